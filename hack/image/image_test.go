package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// clone is this repository's last commit in a folder of its own.
func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sluice")
	if _, err := command(t.Context(), "", nil, "git", "clone", "--quiet", "--shared", "../..", dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func buildOf(t *testing.T, o options) *built {
	t.Helper()
	b, err := build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// Two clones of one commit give the same image to the byte, and it is what it claims to be.
func TestProgramAlone(t *testing.T) {
	o := options{platforms: []string{"linux/amd64", "linux/arm64"}, source: clone(t)}
	b := buildOf(t, o)
	o.source = clone(t)
	if again := buildOf(t, o); digest(t, b.index) != digest(t, again.index) {
		t.Errorf("a second build is another image: %s and %s", digest(t, b.index), digest(t, again.index))
	}
	files, err := b.save(t.TempDir(), "sluice:try")
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(open(t, files)); err != nil {
		t.Error(err)
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, p := range b.images {
		within := extract(t, p.image)
		bin := within["usr/local/bin/sluice"]
		program, err := elf.NewFile(bytes.NewReader(bin.content))
		if err != nil {
			t.Fatal(err)
		}
		if program.Machine != machines[p.platform.Architecture] {
			t.Errorf("%s: the program is of %s", p.platform, program.Machine)
		}
		if program.Section(".interp") != nil {
			t.Errorf("%s: the program is not static", p.platform)
		}
		if link := within["usr/local/bin/kube-proxy"].link; link != "sluice" {
			t.Errorf("%s: kube-proxy leads to %q", p.platform, link)
		}
		if bin.mode != 0o755 || len(within) != 3 {
			t.Errorf("%s: %d files, the program's mode is %o", p.platform, len(within), bin.mode)
		}
	}
}

// What is saved is what was built, in each form, and so is what a registry gets.
func TestSavedAndPushed(t *testing.T) {
	b := tiny(t)
	dir := t.TempDir()
	var files saved
	for range 2 { // the second replaces the first
		var err error
		if files, err = b.save(dir, "sluice:try"); err != nil {
			t.Fatal(err)
		}
	}
	manifest, err := open(t, files).IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest.String() != digest(t, b.index) {
		t.Errorf("the layout holds %v, want %s alone", manifest.Manifests, digest(t, b.index))
	}
	tag, err := name.NewTag("sluice:try")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files.archives {
		img, err := tarball.ImageFromPath(file, &tag)
		if err != nil {
			t.Fatal(err)
		}
		got, err1 := img.ConfigName()
		want, err2 := b.images[i].image.ConfigName()
		if got != want || errors.Join(err1, err2) != nil {
			t.Errorf("%s has image %s, want %s", file, got, want)
		}
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/sluice:try"
	if err := b.push(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := remote.Head(ref); err != nil || at.Digest.String() != digest(t, b.index) {
		t.Errorf("the registry has %v (%v), want %s", at, err, digest(t, b.index))
	}
}

func open(t *testing.T, s saved) v1.ImageIndex {
	t.Helper()
	index, err := layout.ImageIndexFromPath(s.layout)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// tiny is an image of one small file for each of two platforms.
func tiny(t *testing.T) *built {
	t.Helper()
	b := &built{name: "sluice"}
	for _, arch := range []string{"amd64", "arm64"} {
		p := v1.Platform{OS: "linux", Architecture: arch}
		parts := []part{{tree{"etc/arch": {mode: 0o644, content: []byte(arch)}}, "a file"}}
		img, err := assemble(parts, p, map[string]string{"a": "b"}, time.Unix(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		b.images = append(b.images, platformImage{p, img})
	}
	b.index = makeIndex(b.images, map[string]string{"a": "b"})
	return b
}

// The image with iptables never takes the name of the one without.
func TestNames(t *testing.T) {
	for _, tt := range []struct{ args, tag, push string }{
		{"", "sluice:dev", ""},
		{"-iptables", "sluice:dev-iptables", ""},
		{"-tag sluice:1 -push r.example/s:1", "sluice:1", "r.example/s:1"},
		{"-iptables -tag sluice:1 -push r.example/s:1-iptables", "sluice:1-iptables", "r.example/s:1-iptables"},
	} {
		o, err := parse(strings.Fields(tt.args))
		if err != nil || o.tag != tt.tag || o.push != tt.push {
			t.Errorf("%q: tag %q, push %q, error %v; want %q, %q", tt.args, o.tag, o.push, err, tt.tag, tt.push)
		}
	}
}

func TestConfig(t *testing.T) {
	img := tiny(t).images[1].image
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Architecture != "arm64" || !cfg.Created.Time.Equal(time.Unix(1, 0)) || cfg.Config.Labels["a"] != "b" || len(cfg.History) != 1 {
		t.Errorf("configuration %+v", cfg)
	}
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if m.Annotations["a"] != "b" {
		t.Errorf("annotations %v", m.Annotations)
	}
}

// A layer is complete, sorted, of one time, and root's.
func TestLayer(t *testing.T) {
	packed, err := tree{"b/c/file": {mode: 0o600, content: []byte("text")}, "b/a": {link: "c"}, "a": {mode: 0o755}}.pack(time.Unix(5, 0))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if !h.ModTime.Equal(time.Unix(5, 0)) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s is of %v, %d:%d", h.Name, h.ModTime, h.Uid, h.Gid)
		}
	}
	if want := []string{"a", "b/", "b/a", "b/c/", "b/c/file"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	if end := packed[len(packed)-1024:]; len(packed)%512 != 0 || !bytes.Equal(end, make([]byte, 1024)) {
		t.Error("the archive has no end")
	}
}

// extract reads an image's files, all layers applied.
func extract(t *testing.T, img v1.Image) tree {
	t.Helper()
	r := mutate.Extract(img)
	defer func() { _ = r.Close() }()
	files := tree{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeDir {
			files[h.Name] = file{mode: h.FileInfo().Mode().Perm(), link: h.Linkname, content: content}
		}
	}
}
