package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The guest is made of Debian 12, whatever this machine is: what a test finds does not depend on who runs it.
const (
	release  = "bookworm"
	keyring  = "/usr/share/keyrings/debian-archive-keyring.gpg"
	kernel   = "linux-image-cloud-amd64"
	programs = "busybox-static iproute2 iptables nftables ipset ipvsadm conntrack"
)

const sources = `deb [signed-by=` + keyring + `] http://deb.debian.org/debian ` + release + ` main
deb [signed-by=` + keyring + `] http://deb.debian.org/debian-security ` + release + `-security main
`

// status tells apt that the guest has nothing but what the kernel's package needs for booting from a disk.
const status = `Package: boots-from-an-initramfs
Status: install ok installed
Maintainer: none
Architecture: all
Version: 1
Provides: kmod, linux-base (= 99), linux-initramfs-tool
Description: needs none of this

`

// fetch downloads the kernel and the programs with all that they need, checked by apt, and unpacks each package into a
// folder of its own in dir. Nothing else of this machine changes, and it need not be root's.
func fetch(ctx context.Context, dir string) (folders []string, err error) {
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	for name, content := range map[string]string{"status": status, "sources.list": sources} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	install := append(strings.Fields("install --yes --download-only --no-install-recommends "+kernel), strings.Fields(programs)...)
	for _, verb := range [][]string{{"update", "--error-on=any"}, install} {
		if _, err := command(ctx, dir, nil, "apt-get", append(aptOptions(dir), verb...)...); err != nil {
			return nil, err
		}
	}
	return unpack(ctx, dir)
}

// aptOptions has apt know nothing of this machine but its proxy.
func aptOptions(dir string) []string {
	return []string{
		"-q", "-o", "APT::Architecture=amd64", "-o", "APT::Architectures=amd64",
		"-o", "Dir::State=" + filepath.Join(dir, "state"), "-o", "Dir::State::status=" + filepath.Join(dir, "status"),
		"-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
		"-o", "Dir::Etc::SourceList=" + filepath.Join(dir, "sources.list"), "-o", "Dir::Etc::SourceParts=/dev/null",
		"-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none",
	}
}

func unpack(ctx context.Context, dir string) (folders []string, err error) {
	archives, err := filepath.Glob(filepath.Join(dir, "cache/archives/*.deb"))
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "unpacked"), 0o755); err != nil {
		return nil, err
	}
	for i, deb := range archives {
		to := filepath.Join(dir, "unpacked", fmt.Sprint(i))
		if _, err := command(ctx, "", nil, "dpkg-deb", "--extract", deb, to); err != nil {
			return nil, err
		}
		folders = append(folders, to)
	}
	return folders, nil
}
