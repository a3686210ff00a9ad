package iptexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// failure is a program that ended with a status other than 0.
type failure struct {
	command string
	status  int
	stderr  string
}

func (f *failure) Error() string {
	return fmt.Sprintf("%s: exit status %d: %s", f.command, f.status, strings.TrimSpace(f.stderr))
}

// run runs a program, in the network namespace of the calling thread, and returns what it wrote to its standard
// output. The program dies with ctx, and with this process: a restore that outlives a killed daemon would write rules
// after the next daemon has read them.
func run(ctx context.Context, command []string, stdin []byte) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second

	// The kernel takes the end of the starting thread for the death of the parent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", command[0], context.Cause(ctx))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return nil, &failure{command: strings.Join(command, " "), status: exit.ExitCode(), stderr: stderr.String()}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command[0], err)
	}
	return stdout.Bytes(), nil
}
