package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// labelPackages is the annotation that has the Debian packages of an image, as name=version.
const labelPackages = "sluice.debian-packages"

// platformImage is the image for one platform.
type platformImage struct {
	platform v1.Platform
	image    v1.Image
}

// built is a finished image: one for each platform, and the index that holds them all.
type built struct {
	name   string // of files: sluice, or sluice-iptables
	images []platformImage
	index  v1.ImageIndex
}

func build(ctx context.Context, o options) (*built, error) {
	src, err := readSource(ctx, o.source)
	if err != nil {
		return nil, err
	}
	b := &built{name: "sluice"}
	if o.iptables {
		b.name = "sluice-iptables"
	}
	for _, p := range o.platforms {
		img, err := buildPlatform(ctx, src, p, o.iptables)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		b.images = append(b.images, img)
	}
	b.index = makeIndex(b.images, src.labels())
	return b, nil
}

func buildPlatform(ctx context.Context, src source, name string, iptables bool) (platformImage, error) {
	platform, err := v1.ParsePlatform(name)
	if err != nil {
		return platformImage{}, err
	}
	labels := src.labels()
	var parts []part
	if iptables {
		d, err := readDebian(ctx, platform.Architecture)
		if err != nil {
			return platformImage{}, err
		}
		labels[labelPackages] = strings.Join(d.packages, " ")
		parts = append(parts, part{d.files, "iptables and what it needs, from Debian's packages: " + labels[labelPackages]})
	}
	program, err := src.program(ctx, platform.OS, platform.Architecture)
	if err != nil {
		return platformImage{}, err
	}
	parts = append(parts, part{program, "sluice, a static program"})
	img, err := assemble(parts, *platform, labels, src.time)
	return platformImage{platform: *platform, image: img}, err
}

// labels are on the image, on its manifest and on the index.
func (s source) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "sluice",
		"org.opencontainers.image.description": "Service addresses on a Linux node, in kube-proxy's place",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.revision":    s.revision,
		"org.opencontainers.image.created":     s.time.Format(time.RFC3339),
	}
}

// part is a layer to be, and the line about it in the image's history.
type part struct {
	files tree
	says  string
}

// assemble makes an image of the parts, the lowest first.
func assemble(parts []part, platform v1.Platform, labels map[string]string, at time.Time) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, p := range parts {
		layer, err := p.files.layer(at)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: v1.Time{Time: at}, CreatedBy: "hack/image", Comment: p.says}
		if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: history}); err != nil {
			return nil, err
		}
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture, cfg.Variant = platform.OS, platform.Architecture, platform.Variant
	cfg.Created = v1.Time{Time: at}
	cfg.Config = v1.Config{
		Entrypoint: []string{"/usr/local/bin/sluice"},
		Env:        []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin"},
		// Root, because a container's capabilities are in force for root alone.
		User:   "0:0",
		Labels: maps.Clone(labels),
	}
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		return nil, err
	}
	return annotateImage(img, labels), nil
}

func makeIndex(images []platformImage, labels map[string]string) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range images {
		platform := p.platform
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: p.image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return annotateIndex(index, labels)
}

// Annotations returns what it got, so the types below are sure.
func annotateImage(img v1.Image, with map[string]string) v1.Image {
	return mutate.Annotations(img, with).(v1.Image)
}

func annotateIndex(index v1.ImageIndex, with map[string]string) v1.ImageIndex {
	return mutate.Annotations(index, with).(v1.ImageIndex)
}
