package app

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/internal/backend/ipvs"
	"sluice/internal/config"
	"sluice/internal/health"
	"sluice/internal/hostset"
	"sluice/internal/kernel/instance"
	"sluice/internal/kernel/link"
	"sluice/internal/metrics"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
	"sluice/internal/relay/localhost"
)

// Daemon keeps this kernel as a cluster, or as manifests, say.
type Daemon struct {
	Input
	Log Log
	// Flags are those of the command line, and their values.
	Flags func() map[string]string
	// TakeOver has it take the place of a Sluice that runs already.
	TakeOver bool
	// Reload watches where the configuration comes from. It calls changed with each that differs from the one before, or
	// with what is wrong with it, until ctx ends. Nil: the configuration stays as it is.
	Reload func(ctx context.Context, now config.Config, changed func(config.Config, []string, error)) error
}

// Run works until ctx ends; the error is nil then. What it wrote stays.
func (in Daemon) Run(ctx context.Context) error {
	if in.Config.Mode == config.ModePlan {
		return wrongInputf("--mode plan: a plan is no way to run; want nftables, iptables, ipvs or userspace")
	}
	if err := needRoot("run"); err != nil {
		return err
	}
	d, err := in.prepare()
	if err != nil {
		return err
	}
	claim, before, err := in.take(ctx)
	if err != nil {
		return err
	}
	proxy := &relayOfDaemon{log: in.Log.Logger, before: before}
	for {
		if claim, err = d.live(ctx, claim, proxy); claim == nil || err != nil {
			return err
		}
		if d, err = in.prepare(); err != nil {
			return errors.Join(err, claim.Close(), proxy.end(ctx))
		}
	}
}

// prepare makes a daemon that touches nothing yet.
func (in Daemon) prepare() (*daemon, error) {
	m := metrics.New(in.Config.Mode, metricsInfo(in.Config))
	src, err := in.openSource(in.Log, m)
	if err != nil {
		return nil, err
	}
	return &daemon{
		Daemon: in, source: src, metrics: m, machine: hostset.New(in.Log.Logger), atStart: in.Config,
		events: make(chan reconcile.Event), engines: make(chan *engine), next: make(chan net.Conn, 1),
	}, nil
}

// live works until ctx ends, or until another daemon has taken this one's place. It returns a claim if that one has died
// before it could: then another d is to go on, with the same proxy.
func (d *daemon) live(ctx context.Context, claim *instance.Claim, proxy *relayOfDaemon) (again *instance.Claim, err error) {
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	d.relay, d.stop = proxy, stop
	d.board = newBoard(d.source.state, d.relay)
	letGo := d.board.publish(ctx, claim, d.successor)
	err = d.start(working)
	if working.Err() != nil && (errors.Is(err, working.Err()) || errors.Is(err, context.Cause(working))) {
		err = nil // stopped while it was starting
	}
	again, leaveErr := d.leave(ctx, letGo)
	return again, errors.Join(err, leaveErr)
}

// daemon is the parts that run side by side.
type daemon struct {
	Daemon
	source  source
	board   *board
	metrics *metrics.Metrics
	links   *link.Handle
	checks  *health.Server
	local   *localhost.Server
	ports   ports
	atStart config.Config
	events  chan reconcile.Event
	// engines are those that take over from the one that runs.
	engines chan *engine
	relay   *relayOfDaemon

	// unguarded is set where the rules refuse nothing that is for no Service.
	unguarded atomic.Bool

	// next is the connection of the process that takes this one's place, and stop ends this one's work.
	next chan net.Conn
	stop context.CancelCauseFunc

	// machine is start's, and afterwards reload's.
	machine *hostset.Host

	mu sync.Mutex // guards Config, once start has settled it
}

// config is the configuration in force.
func (d *daemon) config() config.Config {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Config
}

// setConfig has another configuration in force.
func (d *daemon) setConfig(c config.Config) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Config = c
}

// start works on the network namespace that is its own.
func (d *daemon) start(ctx context.Context) (err error) {
	if d.links, err = link.Here(); err != nil {
		return err
	}
	defer d.links.Close()
	because := "it is asked for"
	if d.Config.Mode == "" {
		var mode string
		mode, because = choose(ctx)
		d.Input = d.settle(mode)
	}
	d.Log.Info("starting", "mode", d.Config.Mode, "because", because)
	first, err := d.startEngine(ctx, d.Config)
	if err != nil {
		return err
	}
	host, err := readHost(d.links)
	if err != nil {
		return errors.Join(err, first.close())
	}
	planner := plan.NewPlanner(d.planBy(d.Config))
	planner.SetHost(host)
	tellForwarding(d.Log.Logger)
	return d.run(ctx, first, planner)
}

func (d *daemon) run(ctx context.Context, first *engine, planner *plan.Planner) error {
	answers := health.NewProxy(d.board.health, d.source.eligible, d.metrics.Answered)
	d.checks = d.newChecks(answers.Healthy)
	d.local = d.newLocalhost()
	d.ports = d.newPorts(answers)
	d.board.planned(planner.Plan(), plan.Changes{})
	d.board.read(d.warned())
	d.source.tell(event{reason: "Starting", action: startAction})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { d.work(ctx, first, planner); return nil })
	group.Go(func() error { d.checks.Run(ctx); return nil })
	group.Go(func() error { d.local.Run(ctx); return nil })
	group.Go(func() error { return d.ports.health.Run(ctx) })
	group.Go(func() error { return d.ports.metrics.Run(ctx) })
	group.Go(func() error { return d.links.WatchAddresses(ctx, ipvs.DeviceName, func() { d.hostChanged(ctx) }) })
	group.Go(func() error { return d.source.watch(ctx, func(e reconcile.Event) { d.heard(ctx, e) }) })
	group.Go(func() error { return d.reload(ctx) })
	err := group.Wait()
	d.Log.Info("stopped; the rules stay")
	return err
}

// heard passes on what was read, and what is wrong with it.
func (d *daemon) heard(ctx context.Context, e reconcile.Event) {
	d.board.read(e.Problems)
	d.send(ctx, e)
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
		d.Log.Error("this machine's addresses are not known", "error", err, "retry in", addressRetry)
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
