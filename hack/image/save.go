package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// saved is where an image was written to, as full paths.
type saved struct {
	layout   string   // an OCI layout with all platforms
	archives []string // one for each platform, which also Docker before version 25 loads
}

// save writes the layout and the archives into dir. What an earlier build left under their names goes.
func (b *built) save(dir, tag string) (saved, error) {
	ref, err := name.NewTag(tag)
	if err != nil {
		return saved{}, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return saved{}, err
	}
	s := saved{layout: filepath.Join(dir, b.name)}
	if err := errors.Join(os.RemoveAll(s.layout), os.MkdirAll(dir, 0o755)); err != nil {
		return s, err
	}
	path, err := layout.Write(s.layout, empty.Index)
	if err != nil {
		return s, fmt.Errorf("write OCI layout: %w", err)
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": ref.TagStr()})
	if err := path.AppendIndex(b.index, named); err != nil {
		return s, fmt.Errorf("write OCI layout: %w", err)
	}
	for _, p := range b.images {
		file := filepath.Join(dir, fmt.Sprintf("%s-%s-%s.tar", b.name, p.platform.OS, p.platform.Architecture))
		if err := tarball.WriteToFile(file, ref, p.image); err != nil {
			return s, fmt.Errorf("write archive: %w", err)
		}
		s.archives = append(s.archives, file)
	}
	return s, nil
}

// push writes the index and all it holds to a registry.
func (b *built) push(ctx context.Context, to string) error {
	ref, err := name.ParseReference(to)
	if err != nil {
		return err
	}
	err = remote.WriteIndex(ref, b.index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("push %s: %w", to, err)
	}
	return nil
}

func tell(w io.Writer, b *built, tag string, s saved) error {
	digest, err := b.index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\t%s\n\tOCI layout: %s\n", tag, digest, s.layout)
	for i, p := range b.images {
		digest, err := p.image.Digest()
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "\t%s: %s\n\t\t%s\n", p.platform, s.archives[i], digest)
	}
	_, err = fmt.Fprint(w, `load the archive of the node's platform with one of
	docker load -i ARCHIVE
	ctr -n k8s.io images import ARCHIVE
	kind load image-archive ARCHIVE
	cp ARCHIVE /var/lib/rancher/k3s/agent/images/
`)
	return err
}
