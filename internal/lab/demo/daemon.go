package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sluice/internal/kernel/netns"
)

// daemon is `sluice run` on the node.
type daemon struct {
	cmd  *netns.Cmd
	log  string        // the path of what it says
	done chan struct{} // closed when it has ended
}

// planFlags are what every verb needs to make the same plan.
func (s *story) planFlags() []string {
	return []string{"--mode", s.Mode, "--manifests", string(s.folder), "--node", nodeName, "--cluster-cidr", clusterCIDR}
}

// runFlags are those of the daemon.
func (s *story) runFlags() []string {
	return slices.Concat([]string{"run"}, s.planFlags(), s.rules.flags())
}

// runCommand is the daemon's command line.
func (s *story) runCommand(more ...string) string {
	return strings.Join(slices.Concat([]string{filepath.Base(s.Self)}, s.runFlags(), more), " ")
}

// startDaemon starts the daemon on the node. It lives until the story ends it, or this process dies.
func (s *story) startDaemon(more ...string) error {
	log, err := os.CreateTemp(s.dir, "daemon.*.log")
	if err != nil {
		return err
	}
	// With --v=2 it also tells of writes that it need not make.
	cmd := s.node.Command(context.Background(), s.Self, slices.Concat(s.runFlags(), more, []string{"--v=2"})...)
	d := &daemon{cmd: cmd, log: log.Name(), done: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		_ = log.Close()
		return fmt.Errorf("start the daemon: %w", err)
	}
	go func() {
		_ = d.cmd.Wait() // the story ends it with a signal, so it always has an exit status to complain of
		_ = log.Close()
		close(d.done)
	}()
	s.daemon = d
	return nil
}

// end sends a signal and waits for the daemon to end. That it has ended already is no error: who cares asks before.
func (d *daemon) end(signal syscall.Signal) error {
	if err := d.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the daemon: %w", err)
	}
	<-d.done
	return nil
}

func (d *daemon) running() bool {
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// log is what the daemon has said since it was started.
func (s *story) log() (string, error) {
	text, err := os.ReadFile(s.daemon.log)
	return string(text), err
}

// lastWords are the end of the daemon's log.
func (s *story) lastWords() string {
	text, err := s.log()
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// written is how much the daemon changed in its first write, as it says itself; -1 before that.
func written(log string) int {
	for l := range strings.Lines(log) {
		_, rest, ok := strings.Cut(l, `msg="rules written" changed=`)
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(rest, " ")
		if n, err := strconv.Atoi(strings.TrimSpace(number)); err == nil {
			return n
		}
	}
	return -1
}

// restored are the lines of the log that tell of what others changed, without the time of day.
func restored(log string) string {
	var lines strings.Builder
	for l := range strings.Lines(linesWith(log, "somebody else changed")) {
		if _, said, ok := strings.Cut(l, " "); ok {
			lines.WriteString(said)
		}
	}
	return lines.String()
}

// sluice runs another verb of this program on the node and returns what it says.
func (s *story) sluice(ctx context.Context, args ...string) (string, error) {
	out, err := s.node.Command(ctx, s.Self, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("sluice %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
