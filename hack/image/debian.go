package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// debian is iptables and all it needs, of one architecture.
type debian struct {
	packages []string // name=version, sorted by name
	files    tree
}

// readDebian fetches the packages of the release that this machine has, checked by apt, and unpacks them. Nothing of
// this machine changes, and it need not have that architecture.
func readDebian(ctx context.Context, arch string) (debian, error) {
	dir, err := os.MkdirTemp("", "sluice-apt-")
	if err != nil {
		return debian{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	archives, err := download(ctx, dir, arch, "iptables")
	if err != nil {
		return debian{}, err
	}
	d := debian{files: tree{}}
	for _, deb := range archives {
		if err := d.add(ctx, deb); err != nil {
			return debian{}, err
		}
	}
	d.files.linkDefaults()
	d.files.linkMerged()
	return d, nil
}

// download has apt think of an empty machine, so that it fetches all that is needed.
func download(ctx context.Context, dir, arch, pkg string) (archives []string, err error) {
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	status := filepath.Join(dir, "status")
	if err := os.WriteFile(status, nil, 0o600); err != nil {
		return nil, err
	}
	options := []string{
		"-q", "-o", "APT::Architecture=" + arch, "-o", "APT::Architectures=" + arch,
		"-o", "Dir::State=" + filepath.Join(dir, "state"), "-o", "Dir::State::status=" + status,
		"-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
		"-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root",
	}
	for _, verb := range [][]string{
		{"update", "--error-on=any"},
		{"install", "--yes", "--download-only", "--no-install-recommends", pkg},
	} {
		if _, err := command(ctx, dir, []string{"LC_ALL=C"}, "apt-get", slices.Concat(options, verb)...); err != nil {
			return nil, err
		}
	}
	return filepath.Glob(filepath.Join(dir, "cache/archives/*.deb"))
}

func (d *debian) add(ctx context.Context, deb string) error {
	id, err := command(ctx, "", nil, "dpkg-deb", "--show", "--showformat=${Package}=${Version}", deb)
	if err != nil {
		return err
	}
	d.packages = append(d.packages, string(id))
	content, err := command(ctx, "", nil, "dpkg-deb", "--fsys-tarfile", deb)
	if err != nil {
		return err
	}
	if err := d.files.unpack(bytes.NewReader(content)); err != nil {
		return fmt.Errorf("unpack %s: %w", id, err)
	}
	return nil
}

// unpack adds those files of a package that are wanted.
func (t tree) unpack(r io.Reader) error {
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := merged(h.Name)
		if !wanted(name) {
			continue
		}
		switch h.Typeflag {
		case tar.TypeReg:
			content, err := io.ReadAll(archive)
			if err != nil {
				return err
			}
			t[name] = file{mode: h.FileInfo().Mode() & fs.ModePerm, content: content}
		case tar.TypeSymlink:
			t[name] = file{link: h.Linkname}
		case tar.TypeLink:
			t[name] = t[merged(h.Linkname)]
		case tar.TypeDir:
		default:
			return fmt.Errorf("%s: a file of type %q", h.Name, h.Typeflag)
		}
	}
}

// merged is where a file is on a machine whose /bin, /lib and /sbin lead to those of /usr, as all machines of newer
// releases have it. Packages still have files in both.
func merged(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if top, _, ok := strings.Cut(name, "/"); ok && isMerged(top) {
		return "usr/" + name
	}
	return name
}

func isMerged(top string) bool { return top == "bin" || top == "sbin" || strings.HasPrefix(top, "lib") }

// wanted tells iptables, libraries and licences from other programs and from what only people and package managers
// read. With /etc/protocols iptables writes the names of protocols as it does on the node.
func wanted(name string) bool {
	return regexp.MustCompile(`^(usr/lib\w*/|usr/sbin/(ip6?tables-|xtables-\w+-multi$)|usr/share/doc/[^/]+/copyright$|etc/protocols$)`).MatchString(name) &&
		!strings.Contains(name, "/gconv/")
}

// linkDefaults makes iptables the nft variant, as Debian's alternatives do while a package is installed. Sluice follows
// the variant that the node uses, and only where there is no sign of one this one.
func (t tree) linkDefaults() {
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, verb := range []string{"", "-save", "-restore"} {
			t["usr/sbin/"+family+verb] = file{link: family + "-nft" + verb}
		}
	}
}

// linkMerged makes the links that [merged] is about.
func (t tree) linkMerged() {
	for name := range t {
		if top, _, ok := strings.Cut(strings.TrimPrefix(name, "usr/"), "/"); ok && strings.HasPrefix(name, "usr/") && isMerged(top) {
			t[top] = file{link: "usr/" + top}
		}
	}
}
