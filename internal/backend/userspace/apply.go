package userspace

import (
	"context"
	"errors"
	"sync"
	"time"

	"sluice/internal/backend"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

// Relay is the proxy, as far as it is needed here; see [relay.Server].
type Relay interface {
	Put(relay.Target) error
	Remove(relay.Key)
	Close(relay.Key)
	Stats() relay.Stats
	DropInherited()
}

// Deps are what a Backend works with.
type Deps struct {
	// Rules is the inner mode.
	Rules backend.Backend
	// Relay stays the caller's: it outlives the Backend while what it relays comes to an end. Its targets that clients
	// connect to themselves are left alone.
	Relay Relay
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Linger is how long the proxy still accepts connections that rules led to it before they changed. One whose first packet
// came before has its handshake ahead of it, and would be reset; with a packet lost, it takes 3 s.
const Linger = 5 * time.Second

// Backend keeps the rules of the inner mode and the proxy's targets as a Ruleset says.
type Backend struct {
	opts Options
	deps Deps

	mu sync.Mutex // held by Apply and Cleanup
	// applied is the Ruleset whose targets the proxy has.
	applied *Ruleset
	counts  counts
	// leaving are lists that no rule leads to, and since when.
	leaving map[relay.Key]time.Time
	// inherits is set as long as sockets of the process before may be in use.
	inherits bool
}

// New makes a Backend. It does nothing yet.
func New(opts Options, deps Deps) *Backend {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	return &Backend{opts: opts, deps: deps, leaving: map[relay.Key]time.Time{}, inherits: true}
}

// Name is "userspace".
func (b *Backend) Name() string { return "userspace" }

// Compile turns a Plan into a Ruleset.
func (b *Backend) Compile(p *plan.Plan) backend.Ruleset {
	return Compile(p, b.opts, b.deps.Rules.Compile)
}

// Apply has the proxy listen for what is new, then writes the rules. What no rule leads to any more is closed by an Apply that
// comes when [Linger] has passed.
func (b *Backend) Apply(ctx context.Context, rules backend.Ruleset, req backend.Request) (backend.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := rules.(*Ruleset)
	b.takeOver(r)
	r.retry(req.Hold)
	if err := b.listen(r); err != nil {
		return backend.Result{}, err
	}
	inner := req
	inner.Hold = without(req.Hold, r.refused)
	result, err := b.deps.Rules.Apply(ctx, r.inner, inner)
	failed := backend.FailedFamilies(err)
	b.close(r, func(id plan.PortID) bool {
		return failed[id.Family] || inner.Hold[id] || result.Refused[id] != nil
	})
	if b.inherits && err == nil {
		b.inherits = false
		b.deps.Relay.DropInherited() // no rule leads there any more
	}
	for id, why := range r.refused {
		if !req.Hold[id] {
			result.Refuse(id, why)
		}
	}
	return result, err
}

// listen tells the proxy of lists that are new or changed. Where it cannot listen, the rules follow; but not if it has
// stopped for good, since then the rules are the next process's.
func (b *Backend) listen(r *Ruleset) error {
	for {
		moved, err := b.put(r)
		if len(moved) == 0 || err != nil {
			return err
		}
		r.remap(false, moved)
	}
}

// put tells the proxy of all targets that are pending, and returns the Service ports of those that it cannot have.
func (b *Backend) put(r *Ruleset) (moved []plan.PortID, err error) {
	for _, t := range r.unheard() {
		err := b.deps.Relay.Put(t)
		if errors.Is(err, relay.ErrStopped) {
			return nil, err
		}
		delete(r.pending, t.Key)
		delete(b.leaving, t.Key)
		if err != nil {
			r.elsewhere(t.Key, err)
			moved = append(moved, t.Key.Port)
		}
	}
	return moved, nil
}

// close ends listeners that no rule has led to for a while, save of Service ports that the kernel may still have as they were.
// What the proxy relays goes on.
func (b *Backend) close(r *Ruleset, keep func(plan.PortID) bool) {
	closed := b.due(r.unneeded(keep))
	if len(closed) > 0 {
		b.counts.retire(closed, b.deps.Relay.Stats(), r.plan)
	}
	for _, k := range closed {
		if r.plan.Ports[k.Port] == nil {
			b.deps.Relay.Remove(k)
		} else {
			b.deps.Relay.Close(k)
		}
		delete(r.pending, k)
		delete(b.leaving, k)
	}
	r.ports.settle(func(k relay.Key) bool {
		_, leaving := b.leaving[k]
		return leaving || keep(k.Port)
	})
}

// due are those lists that nobody has needed since Linger ago.
func (b *Backend) due(unneeded []relay.Key) (ks []relay.Key) {
	now := b.deps.Now()
	for _, k := range unneeded {
		since, leaving := b.leaving[k]
		switch {
		case !leaving:
			b.leaving[k] = now
		case now.Sub(since) >= Linger:
			ks = append(ks, k)
		}
	}
	return ks
}
