package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/internal/kernel/netns"
)

// stopTimeout is how long a process may take to end well.
const stopTimeout = 30 * time.Second

// Process is a program of the cluster that a test may stop and start again, with the same flags and the same log.
type Process struct {
	// Name is also that of its log.
	Name string
	log  string
	make func() *netns.Cmd

	mu      sync.Mutex // guards the following
	cmd     *netns.Cmd
	ended   chan struct{} // closed when cmd has ended
	waitErr error         // how it did
}

// newProcess has its log in a folder. make returns the program anew for each start.
func newProcess(name, folder string, make func() *netns.Cmd) *Process {
	return &Process{Name: name, log: filepath.Join(folder, name+".log"), make: make}
}

// Start starts it. It is an error if it runs already.
func (p *Process) Start(t testing.TB) {
	t.Helper()
	if err := p.start(); err != nil {
		t.Fatalf("start %s: %v", p.Name, err)
	}
}

func (p *Process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return errors.New("it runs already")
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the program has its own
	cmd := p.make()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr.Setpgid = true // for what it starts to end with it, and for Ctrl-C to reach the tests first
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.waitErr = err
		p.mu.Unlock()
		close(ended)
	}()
	return nil
}

// Pid is its process ID, or 0 if it does not run.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// fate is how a process that nobody stopped has ended by itself; nil if it has not.
func (p *Process) fate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
	default:
		return nil
	}
	if p.cmd == nil {
		return nil
	}
	return fmt.Errorf("%s ended by itself: %w; its log ends with\n%s", p.Name, cmp.Or(p.waitErr, errSuccess), tail(p.Log()))
}

// errSuccess stands for an end without an error.
var errSuccess = errors.New("exit status 0")

// Log is what it has said so far, over all its starts.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(text)
}

// Stop asks it to end (SIGTERM) and waits for that. It is an error if it ends otherwise than well, or by the signal.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	if err := p.end(syscall.SIGTERM); err != nil && !endedBy(err, syscall.SIGTERM) {
		t.Errorf("stop %s: %v\n%s", p.Name, err, tail(p.Log()))
	}
}

// Kill ends it by kill -9 and waits until it is dead. It is an error if something else has ended it before.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if err := p.end(syscall.SIGKILL); !endedBy(err, syscall.SIGKILL) {
		t.Errorf("kill %s: it had ended by itself: %v\n%s", p.Name, err, tail(p.Log()))
	}
}

// endedBy reports whether a signal ended a process that does not handle it.
func endedBy(err error, s syscall.Signal) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Sys().(syscall.WaitStatus).Signal() == s
}

// Pause stops its threads (SIGSTOP): its connections stay open and are silent until Resume.
func (p *Process) Pause(t testing.TB) { t.Helper(); p.signal(t, syscall.SIGSTOP) }

// Resume undoes Pause.
func (p *Process) Resume(t testing.TB) { t.Helper(); p.signal(t, syscall.SIGCONT) }

func (p *Process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.Pid(), s); p.Pid() == 0 || err != nil {
		t.Fatalf("%s: %s: %v", s, p.Name, err)
	}
}

// end sends a signal and returns how the process ended.
func (p *Process) end(s syscall.Signal) error {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	if cmd == nil {
		return errors.New("it does not run")
	}
	_ = cmd.Process.Signal(s) // it fails only when the process has ended, which waitErr tells
	var late error
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		late = fmt.Errorf("it still runs %s after %s", stopTimeout, s)
		_ = cmd.Process.Kill()
		<-ended
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // children that it left behind, if any
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = nil
	return errors.Join(late, p.waitErr)
}

// finish ends it with the test, if it still runs, and says what is strange about it.
func (p *Process) finish(t testing.TB, s syscall.Signal) {
	t.Helper()
	if p.Pid() == 0 {
		return
	}
	if err := p.fate(); err != nil {
		t.Error(err)
	}
	_ = syscall.Kill(p.Pid(), syscall.SIGCONT)
	_ = p.end(s)
}

// tail is the end of a log, as much as a person reads.
func tail(log string) string { return log[max(0, len(log)-4000):] }
