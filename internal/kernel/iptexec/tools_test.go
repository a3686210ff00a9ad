package iptexec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInstallCommand(t *testing.T) {
	tests := []struct{ osRelease, want string }{
		{"ID=debian\n", "apt-get install iptables"},
		{"NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt-get install iptables"},
		{"ID=fedora\n", "dnf install iptables-nft"},
		{"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf install iptables-nft"},
		{"ID=alpine\n", "apk add iptables ip6tables"},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "os-release")
		if err := os.WriteFile(path, []byte(tt.osRelease), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := installCommand(path); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.osRelease, got, tt.want)
		}
	}
	if got := installCommand("/nowhere"); !strings.Contains(got, "apt-get") || !strings.Contains(got, "apk") {
		t.Errorf("without the file: got %q", got)
	}
}
