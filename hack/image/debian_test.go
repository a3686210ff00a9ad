package main

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func needDebian(t *testing.T) {
	t.Helper()
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs Debian's apt-get and dpkg-deb")
		}
	}
}

// Both architectures have every library that their programs and plugins ask for, whatever this machine is.
func TestDebianIsComplete(t *testing.T) {
	needDebian(t)
	for _, arch := range []string{"amd64", "arm64"} {
		d, err := readDebian(t.Context(), arch)
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]bool{}
		for name := range d.files {
			have[filepath.Base(name)] = true
		}
		programs := 0
		for name, f := range d.files {
			program, err := elf.NewFile(bytes.NewReader(f.content))
			if err != nil {
				continue // no program
			}
			programs++
			libraries, err := program.ImportedLibraries()
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range libraries {
				if !have[l] {
					t.Errorf("%s: %s needs %s", arch, name, l)
				}
			}
		}
		if programs < 20 {
			t.Errorf("%s: only %d programs and libraries", arch, programs)
		}
		if !slices.IsSorted(d.packages) || !strings.HasPrefix(strings.Join(d.packages, " "), "gcc-") {
			t.Errorf("%s: packages %q", arch, d.packages)
		}
	}
}

// Both variants of iptables run with nothing but the image's files around them.
func TestIPTablesRuns(t *testing.T) {
	needDebian(t)
	if os.Getuid() != 0 {
		t.Skip("needs root, to change the root folder")
	}
	d, err := readDebian(t.Context(), runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	unpack(t, d.files, dir)
	for program, says := range map[string]string{
		"iptables": "(nf_tables)", "ip6tables-restore": "(nf_tables)", "iptables-legacy-save": "(legacy)",
	} {
		out, err := inside(t.Context(), dir, "/usr/sbin/"+program, "--version")
		if err != nil || !strings.Contains(out, says) {
			t.Errorf("%s --version: %q, %v; want %s", program, out, err, says)
		}
	}
	// Matches are plugins, found and loaded only when they are used.
	const rule = "-A PREROUTING -p sctp -m comment --comment x -m recent --name x --rcheck -j DNAT --to-destination 192.0.2.1"
	if out, err := inside(t.Context(), dir, "/usr/sbin/iptables-translate", strings.Fields("-t nat "+rule)...); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func inside(ctx context.Context, root, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: root}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func unpack(t *testing.T, files tree, dir string) {
	t.Helper()
	for name, f := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if f.link != "" {
			err = os.Symlink(f.link, at)
		} else {
			err = os.WriteFile(at, f.content, f.mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
