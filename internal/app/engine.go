package app

import (
	"context"
	"io"
	"reflect"
	"sync"

	"sluice/internal/backend"
	"sluice/internal/config"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
)

// engine is what one mode takes to keep this kernel as the plan says. Another configuration may need another one; the
// plan and everything around it go on then.
type engine struct {
	mode
	backend backend.Backend
	config  config.Config
	counts  counts
	// inForce is closed when it has taken over from another one.
	inForce chan struct{}
}

// startEngine makes the engine for a configuration, and has the machine set up before the engine looks at it.
func (d *daemon) startEngine(ctx context.Context, c config.Config) (*engine, error) {
	m := modeOf(c, d.relay)
	be, err := m.start(ctx, c, d.Log.Logger, func() { d.setUpMachine(c.Host) })
	if err != nil {
		return nil, err
	}
	d.unguarded.Store(m.keeps().unguarded())
	return &engine{mode: m, backend: be, config: c, counts: countsOf(be, d.Log.Logger), inForce: make(chan struct{})}, nil
}

// planBy is what the plan is made by, for the engine that was started last.
func (d *daemon) planBy(c config.Config) plan.Config {
	p := d.policy(c)
	p.GuardClusterIPs = p.GuardClusterIPs && !d.unguarded.Load()
	return p
}

func (e *engine) close() error { return closeBackend(e.backend) }

// closeBackend gives back what a Backend uses, if that is anything.
func closeBackend(b backend.Backend) error {
	if c, ok := b.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// needsEngine reports whether an engine of one configuration cannot serve another.
func needsEngine(now, next config.Config) bool {
	return now.Mode != next.Mode || now.MasqueradeBit != next.MasqueradeBit ||
		now.Host.Conntrack.BeLiberal != next.Host.Conntrack.BeLiberal ||
		now.Mode == config.ModeIPVS && !reflect.DeepEqual(now.IPVS, next.IPVS) ||
		now.Mode == config.ModeUserspace && userspaceOptions(now).Ports != userspaceOptions(next).Ports
}

// withEngineOf is next as far as the engine of now can serve it.
func withEngineOf(now, next config.Config) config.Config {
	next, _ = next.For(now.Mode)
	next.MasqueradeBit, next.Host.Conntrack.BeLiberal = now.MasqueradeBit, now.Host.Conntrack.BeLiberal
	next.IPVS, next.Userspace = now.IPVS, now.Userspace
	return next
}

// work runs the first engine, and those that take over. What an engine used is given back when the rules of a later one
// stand, since packets may need it until then.
func (d *daemon) work(ctx context.Context, e *engine, planner *plan.Planner) {
	r := succession{engine: e}
	for {
		next, loop := d.runEngine(ctx, &r, planner)
		if next == nil {
			d.closeEngines(append(r.former, r.engine))
			return
		}
		r = succession{engine: next, former: append(r.former, r.engine), loop: loop}
		d.planned(planner.Plan(), planner.SetConfig(d.planBy(next.config)))
		close(next.inForce)
	}
}

// succession is an engine, and what came before it.
type succession struct {
	*engine
	former []*engine       // those whose rules may yet be in force
	loop   *reconcile.Loop // of the last of them
}

// leaver is a mode that uses more than the kernel, which has to last until the rules of another mode stand.
type leaver interface{ leave() }

// dismiss closes engines that another one has taken over from.
func (d *daemon) dismiss(former []*engine, now *engine) {
	d.closeEngines(former)
	for _, e := range former {
		if l, ok := e.mode.(leaver); ok && e.name() != now.name() {
			l.leave()
		}
	}
}

func (d *daemon) closeEngines(engines []*engine) {
	for _, e := range engines {
		if err := e.close(); err != nil {
			d.Log.Warn("what the mode used is not given back", "mode", e.name(), "error", err)
		}
	}
}

// runEngine runs an engine until ctx ends, or until another is to take over, which it returns. Its loop goes on where that
// of the engine before ended.
func (d *daemon) runEngine(ctx context.Context, e *succession, planner *plan.Planner) (next *engine, loop *reconcile.Loop) {
	ctx, stop := context.WithCancel(ctx)
	stands := make(chan struct{})
	loop = reconcile.New(reconcile.Config{
		SyncPeriod: e.config.SyncPeriod, MinSyncPeriod: e.config.MinSyncPeriod,
		Backend: e.backend, Planner: planner, After: e.loop, Told: d.warned(), Sweep: sweep, Stands: func() { close(stands) },
		Planned: d.planned, Refused: d.refused, Observer: observer{d.metrics, d.local}, Log: d.Log.Logger,
	})
	d.metrics.SetMode(e.name())
	d.metrics.Ask(d.metricsSource(e.engine, loop))
	d.board.started(e.name(), e.counts, loop)
	var parts sync.WaitGroup
	parts.Go(func() { loop.Run(ctx, d.events) })
	parts.Go(func() { d.stand(ctx, e, stands) })
	select {
	case next = <-d.engines:
	case <-ctx.Done():
	}
	stop()
	parts.Wait()
	return next, loop
}

// stand does what has to wait until the rules stand.
func (d *daemon) stand(ctx context.Context, e *succession, stands <-chan struct{}) {
	thriftAtStart()
	select {
	case <-stands:
	case <-ctx.Done():
		return
	}
	thrift()
	d.takeOver(ctx, e.engine)
	d.dismiss(e.former, e.engine)
	if err := d.relay.settle(); err != nil {
		d.Log.Warn("the sluice that ran here before is not told that it can go", "error", err)
	}
	e.former = nil
	d.retire(ctx, e.engine)
}

// refused tells who looks after a Service that it is not served as planned, and why.
func (d *daemon) refused(port plan.PortID, why error) {
	d.source.tell(event{service: port.Service, warning: true, reason: "FailedToProgramService", action: "Program", note: why.Error()})
}

// planned passes a change of the plan on to all that follow it.
func (d *daemon) planned(p *plan.Plan, changes plan.Changes) {
	d.checks.Update(p, changes)
	d.local.Update(p, changes)
	d.board.planned(p, changes)
	d.metrics.Planned(changes)
}
