package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// base is what all runs share: a folder of the user's cache with the kernel and an initramfs of modules and programs.
type base string

func (b base) kernel() string    { return filepath.Join(string(b), "vmlinuz") }
func (b base) initramfs() string { return filepath.Join(string(b), "initramfs") }

// findBase makes the base unless an earlier run has left it, or fresh asks for what Debian has today.
func findBase(ctx context.Context, fresh bool) (base, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	b := base(filepath.Join(cache, "sluice", "vm", recipe()))
	if _, err := os.Stat(string(b)); !fresh && !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	fmt.Fprintln(os.Stderr, "vm: downloading the kernel and programs of Debian 12 to", b)
	if err := os.MkdirAll(filepath.Dir(string(b)), 0o755); err != nil {
		return "", err
	}
	return b, b.make(ctx)
}

// recipe names the base by what it is made of.
func recipe() string {
	sum := sha256.Sum256([]byte(sources + status + kernel + programs + wantedFiles.String()))
	return fmt.Sprintf("%s-%x", release, sum[:6])
}

// make replaces the base at once, so that others who use or make it now do not notice.
func (b base) make(ctx context.Context) error {
	dir, err := os.MkdirTemp(filepath.Dir(string(b)), "new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	folders, err := fetch(ctx, dir)
	if err != nil {
		return err
	}
	made := base(filepath.Join(dir, "base"))
	if err := os.Mkdir(string(made), 0o755); err != nil {
		return err
	}
	if err := made.fill(ctx, folders); err != nil {
		return err
	}
	if err := os.Rename(string(b), filepath.Join(dir, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(string(made), string(b))
}

func (b base) fill(ctx context.Context, folders []string) error {
	t := tree{}
	for _, dir := range folders {
		if err := t.addFolder(dir, wantedFiles.MatchString); err != nil {
			return err
		}
	}
	busybox := t["usr/bin/busybox"].from
	if err := t.addBusybox(ctx, busybox); err != nil {
		return err
	}
	for _, dir := range folders {
		if err := b.addKernel(ctx, t, dir, busybox); err != nil {
			return err
		}
	}
	t.linkDefaults()
	t.linkMerged()
	t.addEtc()
	out, err := os.Create(b.initramfs())
	if err != nil {
		return err
	}
	return errors.Join(t.write(out), out.Close())
}

// addKernel takes the kernel, if dir is its package, and adds the lists of modules that installing would have made.
func (b base) addKernel(ctx context.Context, t tree, dir, busybox string) error {
	images, err := filepath.Glob(filepath.Join(dir, "boot/vmlinuz-*"))
	if err != nil || len(images) == 0 {
		return err
	}
	version := strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")
	if _, err := command(ctx, "", nil, busybox, "depmod", "-b", dir, version); err != nil {
		return err
	}
	if err := t.addFolder(dir, isModuleList); err != nil {
		return err
	}
	return os.Rename(images[0], b.kernel())
}

func isModuleList(name string) bool {
	return strings.HasPrefix(name, "usr/lib/modules/") && strings.HasPrefix(path.Base(name), "modules.")
}

// wantedFiles are programs, libraries, what they read in /etc, and those modules that no other hardware needs.
var wantedFiles = regexp.MustCompile(`^(usr/s?bin/` +
	`|usr/lib/x86_64-linux-gnu/([^/]*\.so|xtables/)|usr/lib64/` +
	`|etc/(protocols|services|rpc|ethertypes|iproute2/)` +
	`|usr/lib/modules/[^/]+/kernel/(net|lib|crypto|drivers/(virtio|char|net/[^/]+$)))`)

// addBusybox gives the names of busybox's programs that no package has to it.
func (t tree) addBusybox(ctx context.Context, busybox string) error {
	list, err := command(ctx, "", nil, busybox, "--list-full")
	if err != nil {
		return err
	}
	for program := range strings.FieldsSeq(string(list)) {
		dir := path.Base(path.Dir(program))
		if name := path.Join("usr", dir, path.Base(program)); !t.has(path.Base(program)) {
			t[name] = file{link: "/usr/bin/busybox"}
		}
	}
	return nil
}

func (t tree) has(program string) bool {
	for _, dir := range []string{"usr/bin", "usr/sbin"} {
		if _, ok := t[path.Join(dir, program)]; ok {
			return true
		}
	}
	return false
}

// linkDefaults makes iptables the nft variant, as Debian's alternatives do while a package is installed.
func (t tree) linkDefaults() {
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, verb := range []string{"", "-save", "-restore"} {
			t["usr/sbin/"+family+verb] = file{link: family + "-nft" + verb}
		}
	}
}

// linkMerged makes the links that [merged] is about.
func (t tree) linkMerged() {
	for _, top := range []string{"bin", "sbin", "lib", "lib64"} {
		t[top] = file{link: "usr/" + top}
	}
}

// addEtc adds what Debian's installer writes.
func (t tree) addEtc() {
	for name, content := range map[string]string{
		"etc/passwd":   "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"etc/group":    "root:x:0:\nnogroup:x:65534:\n",
		"etc/hosts":    "127.0.0.1 localhost\n::1 localhost\n",
		"etc/hostname": "vm\n",
		"root/.keep":   "",
	} {
		t[name] = file{mode: 0o644, content: []byte(content)}
	}
}
