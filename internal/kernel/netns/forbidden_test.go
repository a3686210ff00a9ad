package netns

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestExplainNamesTheSetting(t *testing.T) {
	t.Setenv(isolatedEnv, byUser)
	tests := []struct {
		name, file, value string
		err               error
		forbidden         bool
		says              string
	}{
		{"ubuntu", "kernel/apparmor_restrict_unprivileged_userns", "1", syscall.EACCES, true, "kernel.apparmor_restrict_unprivileged_userns is 1"},
		{"debian", "kernel/unprivileged_userns_clone", "0", syscall.EPERM, true, "kernel.unprivileged_userns_clone is 0"},
		{"limit", "user/max_user_namespaces", "0", syscall.ENOSPC, true, "user.max_user_namespaces is 0"},
		{"allowed by settings", "user/max_user_namespaces", "96364", syscall.EPERM, true, "no known kernel setting"},
		{"another error", "user/max_user_namespaces", "0", io.EOF, false, "EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, tt.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tt.value+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := explainFrom(root, tt.err)
			if errors.Is(err, ErrForbidden) != tt.forbidden || !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
			if tt.forbidden && !strings.Contains(err.Error(), "sudo ") {
				t.Errorf("%v does not say which command works", err)
			}
		})
	}
}

func TestExplainDoesNotSendRootToSudo(t *testing.T) {
	t.Setenv(isolatedEnv, byRoot)
	err := explainFrom(t.TempDir(), syscall.EPERM)
	if errors.Is(err, ErrForbidden) || strings.Contains(err.Error(), "sudo") {
		t.Errorf("got %v", err)
	}
}

func TestCommandThatWorksAsRoot(t *testing.T) {
	for _, tt := range []struct{ program, want string }{
		{"bin/sluice", "sudo bin/sluice demo"},
		{"/tmp/go-build3471565775/b001/exe/sluice", "go build -o bin/sluice sluice/cmd/sluice && sudo bin/sluice demo"},
	} {
		if got := asRoot([]string{tt.program, "demo"}, "sluice/cmd/sluice"); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.program, got, tt.want)
		}
	}
}
