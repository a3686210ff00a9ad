package netns

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
)

// Cmd is an [exec.Cmd] whose program runs inside a network namespace.
type Cmd struct {
	*exec.Cmd
	ns     *NS
	waited chan struct{}
}

// Command returns the program name, with args, to run inside the namespace. It is killed when ctx ends.
func (ns *NS) Command(ctx context.Context, name string, args ...string) *Cmd {
	return &Cmd{Cmd: exec.CommandContext(ctx, name, args...), ns: ns}
}

// DieWithParent makes the kernel kill the program when this process ends, however it ends. Call it before Start.
func (c *Cmd) DieWithParent() *Cmd {
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return c
}

// Start starts the program; Wait must follow, as for [exec.Cmd].
//
// The thread that starts the program lives until Wait returns, because the kernel takes the end of that thread for
// the death of the parent.
func (c *Cmd) Start() error {
	started := make(chan error, 1)
	waited := make(chan struct{})
	c.waited = waited
	go func() {
		err := c.ns.Do(func() error {
			err := c.Cmd.Start()
			if err != nil {
				return err
			}
			started <- nil
			<-waited
			return nil
		})
		if err != nil {
			started <- err
		}
	}()
	return <-started
}

// Wait waits for the program to end.
func (c *Cmd) Wait() error {
	err := c.Cmd.Wait()
	if c.waited != nil {
		close(c.waited)
		c.waited = nil
	}
	return err
}

// Run starts the program and waits for it to end.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output runs the program and returns what it wrote to its standard output. When it fails, the [exec.ExitError] holds
// what it wrote to its standard error, unless Stderr was set.
func (c *Cmd) Output() ([]byte, error) {
	var stdout, stderr bytes.Buffer
	c.Stdout = &stdout
	if c.Stderr == nil {
		c.Stderr = &stderr
	}
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		exit.Stderr = stderr.Bytes()
	}
	return stdout.Bytes(), err
}

// CombinedOutput runs the program and returns what it wrote to its standard output and standard error.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.Bytes(), err
}
