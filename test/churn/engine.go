package churn

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"sluice/internal/backend/nftables"
	"sluice/internal/kernel/netns"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
)

// asEngine in the environment makes the test program be the process that writes, with a Config in JSON.
const asEngine = "SLUICE_CHURN_ENGINE"

// Main is for TestMain: it runs the process that writes and exits, if this is it.
func Main() {
	text := os.Getenv(asEngine)
	if text == "" {
		return
	}
	if err := write(text, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// engine is that process as its parent sees it.
type engine struct {
	testing.TB
	cmd *netns.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	log bytes.Buffer
}

// report is what the process says when all is written.
type report struct {
	CPU    time.Duration
	Writes int
}

// start runs it on a node until all Services are written.
func start(tb testing.TB, node *lab.Host, c Config) *engine {
	tb.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		tb.Fatal(err)
	}
	e := &engine{TB: tb, cmd: node.Command(context.Background(), "/proc/self/exe")}
	e.cmd.Env = append(os.Environ(), asEngine+"="+string(text))
	e.cmd.Stderr = &e.log
	in, err := e.cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	e.in, e.out = in, bufio.NewScanner(out)
	if err := e.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	e.hear()
	return e
}

// hear waits for the process to say how far it is.
func (e *engine) hear() (r report) {
	e.Helper()
	if !e.out.Scan() {
		_ = e.cmd.Wait() // it has said why on its log
		e.Fatalf("the process that writes has ended:\n%s", &e.log)
	}
	if err := json.Unmarshal(e.out.Bytes(), &r); err != nil {
		e.Fatal(err)
	}
	return r
}

// change has it make all changes, and waits until they are written.
func (e *engine) change() report {
	e.Helper()
	if _, err := io.WriteString(e.in, "\n"); err != nil {
		e.Fatal(err)
	}
	return e.hear()
}

// end ends it.
func (e *engine) end() {
	e.Helper()
	if err := e.in.Close(); err != nil {
		e.Error(err)
	}
	if err := e.cmd.Wait(); err != nil {
		e.Errorf("%v\n%s", err, &e.log)
	}
}

// write is what the process does: it goes one step further for each line that it reads, and says so.
func write(config string, in io.Reader, out io.Writer) error {
	var c Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	lines, say := bufio.NewScanner(in), json.NewEncoder(out)
	w := newWriter()
	defer w.stop()
	seq := newSequence(c)
	w.send(model.Delta(*seq.crowd.Snapshot()))
	if err := w.settle(); err != nil {
		return err
	}
	begin := w.report()
	if err := say.Encode(begin); err != nil {
		return err
	}
	if !lines.Scan() {
		return lines.Err()
	}
	begin = w.report()
	tick := time.NewTicker(time.Second / time.Duration(c.PerSecond))
	defer tick.Stop()
	for range c.Changes {
		<-tick.C
		w.send(seq.next())
	}
	if err := w.settle(); err != nil {
		return err
	}
	end := w.report()
	if err := say.Encode(report{CPU: end.CPU - begin.CPU, Writes: end.Writes - begin.Writes}); err != nil {
		return err
	}
	lines.Scan() // until the parent closes it
	return lines.Err()
}

// writer is the daemon without its source.
type writer struct {
	loop   *reconcile.Loop
	events chan reconcile.Event
	stop   context.CancelFunc
}

// policy takes the clients for pods.
func policy() plan.Config {
	return plan.Config{
		ClusterCIDRs:    []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
		GuardClusterIPs: true, NodePortAddresses: plan.NodePortAddresses{Primary: true},
	}
}

func newWriter() *writer {
	ctx, stop := context.WithCancel(context.Background())
	w := &writer{events: make(chan reconcile.Event), stop: stop}
	w.loop = reconcile.New(reconcile.Config{
		SyncPeriod: 30 * time.Second, MinSyncPeriod: time.Second, Planner: plan.NewPlanner(policy()),
		Backend: nftables.New(nftables.DefaultOptions(), nftables.Deps{}),
		Log:     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	go w.loop.Run(ctx, w.events)
	return w
}

func (w *writer) send(d model.Delta) {
	w.events <- reconcile.Event{Input: &reconcile.Input{Delta: d}}
}

// settle waits until all that was sent is written. The loop takes an event only when it has planned the one before.
func (w *writer) settle() error {
	w.events <- reconcile.Event{}
	for {
		sum := w.loop.Summary()
		switch {
		case sum.Failures > 0 || sum.Ports[reconcile.Failed] > 0:
			return fmt.Errorf("writing failed: %+v", sum)
		case sum.Applies > 0 && sum.Ports[reconcile.Pending] == 0:
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

func (w *writer) report() report {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // of oneself it cannot fail
	return report{CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()), Writes: w.loop.Summary().Applies}
}
