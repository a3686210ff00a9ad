package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/internal/kernel/netns"
	"sluice/internal/lab"
	"sluice/internal/testkit/nstest"
)

// asSluice in the environment makes the test program be sluice.
const asSluice = "SLUICE_TEST_AS_SLUICE"

// Main runs the tests of m as [nstest.Main] does, or sluice, which is cli.Main, where [Command] started this program.
func Main(m *testing.M, sluice func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int) {
	if os.Getenv(asSluice) == "" {
		nstest.Main(m)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	status := sluice(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// Command is sluice with args, to run on a machine. It dies with the test program.
func Command(h *lab.Host, args ...string) *netns.Cmd {
	cmd := h.Command(context.Background(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), asSluice+"=1", "NO_COLOR=1")
	return cmd
}

// Run runs a verb of sluice on a machine, and returns what it printed.
func Run(h *lab.Host, args ...string) (string, error) {
	out, err := Command(h, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("sluice %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// Daemon is `sluice run`.
type Daemon struct {
	t     testing.TB
	cmd   *netns.Cmd
	log   log
	ended bool
}

// Start runs `sluice run` with args on a machine. When the test ends, so does the daemon, unless it has ended before; if
// the test has failed then, it shows the log.
func Start(t testing.TB, h *lab.Host, args ...string) *Daemon {
	t.Helper()
	return StartCommand(t, Command(h, append([]string{"run"}, args...)...))
}

// StartCommand is Start for a [Command] of `sluice run` that was made by hand.
func StartCommand(t testing.TB, cmd *netns.Cmd) *Daemon {
	t.Helper()
	d := &Daemon{t: t, cmd: cmd}
	d.cmd.Stdout, d.cmd.Stderr = &d.log, &d.log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d.ended {
			return
		}
		d.Stop()
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", d.Log())
		}
	})
	return d
}

// Pid is its process ID.
func (d *Daemon) Pid() int { return d.cmd.Process.Pid }

// Log is what it has said so far.
func (d *Daemon) Log() string { return d.log.String() }

// Stop asks it to end and waits for that. It is an error if it ends otherwise than well.
func (d *Daemon) Stop() {
	d.t.Helper()
	d.ended = true
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it fails only when the process has ended, which Wait reports
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("sluice run: %v\n%s", err, d.Log())
	}
}

// Wait waits until it has ended by itself. It is an error if that takes longer than a limit, or if it ends otherwise than
// well.
func (d *Daemon) Wait(longest time.Duration) error {
	timer := time.AfterFunc(longest, func() { _ = d.cmd.Process.Kill() }) // it fails only when the process has ended
	defer timer.Stop()
	d.ended = true
	return d.cmd.Wait()
}

// Kill ends it by kill -9, and waits until it is dead. It is an error if something else has ended it before.
func (d *Daemon) Kill() {
	d.t.Helper()
	d.ended = true
	_ = d.cmd.Process.Kill() // as in Stop
	var exit *exec.ExitError
	err := d.cmd.Wait()
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		d.t.Errorf("sluice run ended by itself: %v\n%s", err, d.Log())
	}
}

// Complaints are the lines of the log that are errors.
func (d *Daemon) Complaints() (lines []string) {
	for l := range strings.Lines(d.Log()) {
		if strings.Contains(l, "ERR") || strings.Contains(l, "level=ERROR") {
			lines = append(lines, l)
		}
	}
	return lines
}

// log is what a daemon says.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write takes in what the daemon says.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String is all of it.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
