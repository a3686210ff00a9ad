package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// source is the state of the repository that an image is built from.
type source struct {
	dir      string
	revision string    // the commit, with "-dirty" where files differ from it
	time     time.Time // of the commit, or SOURCE_DATE_EPOCH
}

func readSource(ctx context.Context, dir string) (source, error) {
	s := source{dir: dir}
	out, err := command(ctx, dir, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return s, err
	}
	revision, seconds, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	changes, err := command(ctx, dir, nil, "git", "status", "--porcelain")
	if err != nil {
		return s, err
	}
	if len(changes) > 0 {
		revision += "-dirty"
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds = epoch
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s, fmt.Errorf("time of the commit, or SOURCE_DATE_EPOCH: %w", err)
	}
	s.revision, s.time = revision, time.Unix(n, 0).UTC()
	return s, nil
}

// program is the tree with the static program. kube-proxy is a second name of it: under that name it takes kube-proxy's
// command line, so that in kubeadm's DaemonSet nothing but the image has to change.
func (s source) program(ctx context.Context, goos, goarch string) (tree, error) {
	dir, err := os.MkdirTemp("", "sluice-image-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin := filepath.Join(dir, "sluice")
	env := []string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + goarch, "GOAMD64=v1", "GOARM64=v8.0"}
	// -buildvcs has the program know its commit, whatever GOFLAGS says; -trimpath has it not know this folder.
	_, err = command(ctx, s.dir, env, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", bin, "./cmd/sluice")
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(bin)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(s.dir, "LICENSE"))
	if err != nil {
		return nil, err
	}
	return tree{
		"usr/local/bin/sluice":         {mode: 0o755, content: content},
		"usr/local/bin/kube-proxy":     {link: "sluice"},
		"usr/share/doc/sluice/LICENSE": {mode: 0o644, content: licence},
	}, nil
}

// command runs a program in dir and returns what it printed; the error has what it complained of.
func command(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	line := strings.Join(append([]string{name}, args...), " ")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%s: %w: %s", line, err, bytes.TrimSpace(exit.Stderr))
	}
	return nil, fmt.Errorf("%s: %w", line, err)
}
