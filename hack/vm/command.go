package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

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
