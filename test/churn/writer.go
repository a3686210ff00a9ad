package churn

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"syscall"
	"time"

	"sluice/internal/backend/nftables"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
)

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
