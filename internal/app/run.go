package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/internal/backend"
	"sluice/internal/config"
	"sluice/internal/health"
	"sluice/internal/kernel/instance"
	"sluice/internal/kernel/link"
	"sluice/internal/kernel/sysctl"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
	"sluice/internal/source/manifest"
)

// Run keeps this kernel as the manifests say, until ctx ends; the error is nil then. What it wrote stays.
func Run(ctx context.Context, in Input, log *slog.Logger) (err error) {
	if err := in.checkRun(); err != nil {
		return err
	}
	claim, err := instance.Take()
	if err != nil {
		return err
	}
	b := &board{since: time.Now(), log: log}
	end := b.publish(ctx, claim)
	defer func() { err = errors.Join(err, end()) }()
	err = in.runClaimed(ctx, b, log)
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil // stopped while it was starting
	}
	return err
}

// runClaimed works on the network namespace that is its own.
func (in Input) runClaimed(ctx context.Context, b *board, log *slog.Logger) (err error) {
	links, err := link.Here()
	if err != nil {
		return err
	}
	defer links.Close()
	because := "it is asked for"
	if in.Config.Mode == "" {
		var mode string
		mode, because = choose(ctx)
		in = in.settle(mode)
	}
	log.Info("starting", "mode", in.Config.Mode, "because", because)
	m := modeOf(in.Config)
	be, err := m.start(ctx, in.Config, log)
	if err != nil {
		return err
	}
	if closer, ok := be.(io.Closer); ok {
		defer func() { err = errors.Join(err, closer.Close()) }()
	}
	d := &daemon{Input: in, links: links, log: log, events: make(chan reconcile.Event), board: b, mode: m}
	return d.run(ctx, be)
}

// checkRun refuses what could only end in rules being taken away by mistake.
func (in Input) checkRun() error {
	if in.Config.Mode == config.ModePlan {
		return wrongInputf("--mode plan: a plan is no way to run; want nftables or iptables")
	}
	if len(in.Manifests) == 0 {
		return wrongInputf("no manifests are given (--manifests)")
	}
	for _, path := range in.Manifests {
		if path == manifest.Stdin {
			return wrongInputf("--manifests -: standard input cannot be watched")
		}
		if _, err := os.Stat(path); err != nil {
			return WrongInput(err)
		}
	}
	return nil
}

// tellForwarding warns where packets of others cannot pass this machine.
func tellForwarding(log *slog.Logger) {
	switch value, err := sysctl.Get(keyForward); {
	case err != nil:
		log.Warn("it is not known whether this machine forwards packets", "error", err)
	case value == "0":
		log.Warn("this machine does not forward packets, so only connections of its own reach endpoints elsewhere", "setting", keyForward, "value", value)
	}
}

// daemon is the parts that run side by side.
type daemon struct {
	Input
	links  *link.Handle
	log    *slog.Logger
	events chan reconcile.Event
	board  *board
	mode   mode
	told   sync.Once
}

func (d *daemon) run(ctx context.Context, be backend.Backend) error {
	host, err := readHost(d.links)
	if err != nil {
		return err
	}
	planner := plan.NewPlanner(d.planConfig())
	planner.SetHost(host)
	tellForwarding(d.log)

	stands := make(chan struct{})
	var loop *reconcile.Loop
	checks := health.New(func() bool { return loop.Healthy() }, d.log)
	loop = reconcile.New(reconcile.Config{
		SyncPeriod: d.Config.SyncPeriod, MinSyncPeriod: d.Config.MinSyncPeriod,
		Backend: be, Planner: planner, Sweep: sweep, Stands: func() { close(stands) }, Log: d.log,
		Planned: func(p *plan.Plan, changes plan.Changes) {
			checks.Update(p, changes)
			d.board.planned(p, changes)
		},
	})
	d.board.planned(planner.Plan(), plan.Changes{})
	d.board.started(d.Config.Mode, be, loop)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { loop.Run(ctx, d.events); return nil })
	group.Go(func() error { checks.Run(ctx); return nil })
	group.Go(func() error { d.takeOver(ctx, stands); return nil })
	group.Go(func() error { thrift(ctx, stands); return nil })
	group.Go(func() error { return d.links.WatchAddresses(ctx, func() { d.hostChanged(ctx) }) })
	group.Go(func() error { return d.watch(ctx) })
	err = group.Wait()
	d.log.Info("stopped; the rules stay")
	return err
}

// watch turns what the manifests say into events.
func (d *daemon) watch(ctx context.Context) error {
	now := model.NewSnapshot()
	err := manifest.Watch(ctx, d.Manifests, func(next *model.Snapshot, problems []manifest.Problem) {
		var texts []string
		for _, p := range problems {
			texts = append(texts, p.Error())
		}
		texts = append(texts, unserved(next)...)
		input := &reconcile.Input{Delta: model.Diff(now, next), Problems: map[any][]string{"manifests": texts}}
		d.board.read(texts)
		d.told.Do(func() { d.tellStart(next) })
		d.send(ctx, reconcile.Event{Input: input})
		now = next
	})
	if err != nil {
		return fmt.Errorf("watch manifests: %w", err)
	}
	return nil
}

// tellStart says what the first reading found.
func (d *daemon) tellStart(s *model.Snapshot) {
	cfg := d.planConfig()
	node := plan.Build(cfg, plan.Host{}, &model.Snapshot{Nodes: s.Nodes}).Node
	d.log.Info("manifests read", "node", node.Name, "services", len(s.Services), "nodes", len(s.Nodes))
	if cfg.DetectLocal == plan.DetectClusterCIDR && len(cfg.ClusterCIDRs) == 0 {
		d.log.Info("no cluster CIDR is given: no client counts as a pod, and connections to cluster IPs keep their source")
	}
}

// addressRetry is the wait after addresses could not be read.
const addressRetry = 5 * time.Second

// hostChanged passes this machine's addresses on. It does not give up, since nobody calls again for the same change.
func (d *daemon) hostChanged(ctx context.Context) {
	for ctx.Err() == nil {
		host, err := readHost(d.links)
		if err == nil {
			d.send(ctx, reconcile.Event{Host: &host})
			return
		}
		d.log.Error("this machine's addresses are not known", "error", err, "retry in", addressRetry)
		select {
		case <-time.After(addressRetry):
		case <-ctx.Done():
		}
	}
}

func (d *daemon) send(ctx context.Context, e reconcile.Event) {
	select {
	case d.events <- e:
	case <-ctx.Done():
	}
}
