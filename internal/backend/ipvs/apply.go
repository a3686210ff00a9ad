package ipvs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"sluice/internal/backend"
	"sluice/internal/kernel/sysctl"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// Backend is the ipvs mode. It is safe for concurrent use.
type Backend struct {
	opts Options
	deps Deps

	counting counting

	mu      sync.Mutex // guards all following fields
	servers Servers    // nil: not yet open
	device  Device
	// set is whether the kernel has been set up for the mode.
	set bool
	// known is what the kernel has, nil if that was never read or is in doubt. It was written for of.
	known *state
	of    *Ruleset
	begun bool // the kernel has had all that was wanted once
	// draining are virtual servers with destinations that go when their connections have, and idle those of them where
	// some have.
	draining, idle map[Server]struct{}
	// lingering are those that nobody wants any more.
	lingering map[Server]struct{}
	// protocols are those of the marks' virtual servers that this process has wanted, which the kernel does not have.
	protocols map[Server]model.Protocol
	// lacking are schedulers that the kernel does not have, and told who was told of one.
	lacking map[string]bool
	told    map[plan.PortID]string
	// replies are the packets of destinations when they were last looked at by Retire.
	replies map[reply]traffic
}

// Deps are the parts that a Backend works with.
type Deps struct {
	// Rules is the inner mode, which has netfilter do what virtual servers cannot; see [Delivery]. Nil: nothing is written
	// but virtual servers and addresses, which is enough to remove them.
	Rules backend.Backend
	// Servers opens the kernel's virtual servers; nil: those in the network namespace of the thread that calls first.
	Servers func() (Servers, error)
	// Device opens its interfaces; nil: as Servers.
	Device func() (Device, error)
	// Loaded reports whether the kernel has virtual servers without having to load them; nil: as Servers.
	Loaded func() bool
	// Sysctl are its settings; nil: as Servers.
	Sysctl Sysctl
	// Sources tells the addresses that connections which connection tracking knows were begun from; nil: as Servers.
	Sources func() (map[netip.Addr]bool, error)
	// Warn is told of what the mode can do without. Nil: nobody is.
	Warn func(error)
	// Fallback is told, once for each Service port, that the kernel does not have the scheduler it asks for, and that
	// another one is used. Nil: nobody is.
	Fallback func(plan.PortID, error)
}

// Sysctl reads and writes kernel settings by the names that sysctl(8) has for them.
type Sysctl interface {
	Get(key string) (string, error)
	// Set writes unless the setting has the value.
	Set(key, value string) (changed bool, err error)
}

// system are the settings of this thread's namespaces.
type system struct{}

func (system) Get(key string) (string, error)      { return sysctl.Get(key) }
func (system) Set(key, value string) (bool, error) { return sysctl.Set(key, value) }

// New makes a Backend. It touches nothing.
func New(opts Options, deps Deps) *Backend {
	if opts.Scheduler == "" {
		opts.Scheduler = roundRobin
	}
	if deps.Servers == nil {
		deps.Servers = openServers
	}
	if deps.Device == nil {
		deps.Device = openDevice
	}
	if deps.Loaded == nil {
		deps.Loaded = loaded
	}
	if deps.Sources == nil {
		deps.Sources = sourcesOfConnections
	}
	if deps.Sysctl == nil {
		deps.Sysctl = system{}
	}
	if deps.Warn == nil {
		deps.Warn = func(error) {}
	}
	if deps.Fallback == nil {
		deps.Fallback = func(plan.PortID, error) {}
	}
	return &Backend{
		opts: opts, deps: deps, protocols: map[Server]model.Protocol{}, lacking: map[string]bool{}, told: map[plan.PortID]string{},
	}
}

// Name is the value of --mode.
func (b *Backend) Name() string { return "ipvs" }

// Compile compiles a Plan.
func (b *Backend) Compile(p *plan.Plan) backend.Ruleset { return Compile(p, b.opts, b.deps.Rules) }

// Apply makes the kernel hold what r says. See [backend.Backend].
//
// Virtual servers, destinations and addresses that are new come first, then the rules, and at last what goes.
func (b *Backend) Apply(ctx context.Context, r backend.Ruleset, req backend.Request) (result backend.Result, err error) {
	rs, ok := r.(*Ruleset)
	if !ok {
		return result, fmt.Errorf("apply: %T is not a ruleset of mode ipvs", r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return result, err
	}
	if err := b.setUp(); err != nil {
		return result, err
	}
	a := &run{Backend: b, rules: rs, req: req, result: &result, made: map[Server]plan.PortID{}}
	err = a.apply(ctx)
	return result, err
}

func (b *Backend) open() (err error) {
	if b.servers == nil {
		b.servers, err = b.deps.Servers()
	}
	if err != nil {
		return err
	}
	return b.openDevice()
}

func (b *Backend) openDevice() (err error) {
	if b.device == nil {
		b.device, err = b.deps.Device()
	}
	return err
}

// Close closes the sockets. The inner mode is somebody else's to close.
func (b *Backend) Close() error {
	err := b.counting.close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.device != nil {
		b.device.Close()
		b.device = nil
	}
	if b.servers != nil {
		err = errors.Join(err, b.servers.Close())
		b.servers = nil
	}
	b.known = nil
	return err
}
