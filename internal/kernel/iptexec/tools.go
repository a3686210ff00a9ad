package iptexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Family is an address family; each has programs and tables of its own.
type Family uint8

// The address families.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// String returns "IPv4" or "IPv6".
func (f Family) String() string {
	return fmt.Sprintf("IPv%d", uint8(f))
}

func (f Family) program() string {
	if f == IPv6 {
		return "ip6tables"
	}
	return "iptables"
}

// Variant tells the two implementations of iptables apart. They keep their rules in different places in the kernel,
// and packets pass both.
type Variant string

// The variants, in iptables' own words.
const (
	NFT    Variant = "nf_tables" // rules are in nf_tables
	Legacy Variant = "legacy"    // rules are in x_tables
)

func (v Variant) infix() string {
	if v == NFT {
		return "-nft"
	}
	return "-legacy"
}

// ErrNotInstalled occurs when a program of iptables is in none of the folders where it may be. The error says how to
// install it.
var ErrNotInstalled = errors.New("iptables is not installed")

// Tools are the programs of one variant. A Tools is immutable and safe for concurrent use.
type Tools struct {
	Variant  Variant
	Version  string              // such as "1.8.9"
	commands map[string][]string // program and verb, such as "ip6tables-save", to the command that runs it; the verb may be ""
}

// Find returns the programs of the variant, or the system's default variant when it is "".
func Find(ctx context.Context, v Variant) (*Tools, error) {
	t := &Tools{Variant: v, commands: map[string][]string{}}
	for _, f := range []Family{IPv4, IPv6} {
		for _, verb := range []string{"", "-save", "-restore"} {
			command, err := find(ctx, f, v, verb)
			if err != nil {
				return nil, err
			}
			t.commands[f.program()+verb] = command
		}
	}
	version, variant, err := versionOf(ctx, t.command(IPv4, "-restore"))
	if err != nil {
		return nil, err
	}
	t.Version, t.Variant = version, variant
	return t, nil
}

func (t *Tools) command(f Family, verb string) []string {
	return t.commands[f.program()+verb]
}

// find looks for the program under the variant's own name, then for the plain name if that is of the variant, then for
// the program that distributions link all names to.
func find(ctx context.Context, f Family, v Variant, verb string) ([]string, error) {
	plain := f.program() + verb
	if v == "" {
		return lookUp(plain)
	}
	if command, err := lookUp(f.program() + v.infix() + verb); err == nil {
		return command, nil
	}
	if command, err := lookUp(plain); err == nil {
		if _, is, err := versionOf(ctx, command); err == nil && is == v {
			return command, nil
		}
	}
	command, err := lookUp("xtables" + v.infix() + "-multi")
	if err != nil {
		return nil, notInstalled(f.program() + v.infix() + verb)
	}
	return append(command, plain), nil
}

// lookUp finds a program. An ordinary user's PATH lacks the sbin folders.
func lookUp(name string) ([]string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return []string{path}, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return []string{path}, nil
		}
	}
	return nil, notInstalled(name)
}

func notInstalled(name string) error {
	return fmt.Errorf("%w: no program %s; install it with: %s", ErrNotInstalled, name, installCommand("/etc/os-release"))
}

// installCommand returns the command that installs iptables on the distribution that the os-release file names.
func installCommand(osRelease string) string {
	const (
		apt = "apt-get install iptables"
		dnf = "dnf install iptables-nft"
		apk = "apk add iptables ip6tables"
	)
	text, _ := os.ReadFile(osRelease) // without it, all commands are told
	for _, id := range regexp.MustCompile(`(?m)^ID(?:_LIKE)?="?([^"\n]*)`).FindAllStringSubmatch(string(text), -1) {
		for name := range strings.FieldsSeq(id[1]) {
			switch name {
			case "debian", "ubuntu":
				return apt
			case "fedora", "rhel", "centos":
				return dnf
			case "alpine":
				return apk
			}
		}
	}
	return strings.Join([]string{apt, dnf, apk}, ", or ")
}

// versionOf asks a program for its version and variant, as in "iptables-restore v1.8.9 (nf_tables)". Programs before
// 1.8 are of the legacy variant and do not say so.
func versionOf(ctx context.Context, command []string) (string, Variant, error) {
	out, err := run(ctx, append(command, "--version"), nil)
	if err != nil {
		return "", "", err
	}
	m := regexp.MustCompile(` v(\d+(?:\.\d+)*)(?: \((\w+)\))?`).FindStringSubmatch(string(out))
	if m == nil {
		return "", "", fmt.Errorf("%s --version: no version in %q", strings.Join(command, " "), out)
	}
	if Variant(m[2]) == NFT {
		return m[1], NFT, nil
	}
	return m[1], Legacy, nil
}
