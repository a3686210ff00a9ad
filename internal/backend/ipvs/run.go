package ipvs

import (
	"context"
	"errors"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// tries is how often something is looked at again that others changed meanwhile.
const tries = 5

// run is one Apply.
type run struct {
	*Backend
	rules  *Ruleset
	req    backend.Request
	result *backend.Result
	// fresh is set once the kernel was read.
	fresh bool
	// dirt is what the Ruleset says that changed, and todo what there is to compare.
	dirt dirt
	todo dirt
	// failed is what went wrong first, by family, and rulesFailed what did with the rules.
	failed      [2]error
	rulesFailed error
	// made are the virtual servers that were not there before, and unruled the Service ports whose rules were refused.
	made    map[Server]plan.PortID
	unruled map[plan.PortID]error
}

// apply looks again, and goes on, if the kernel turns out not to be as it was thought to be.
func (a *run) apply(ctx context.Context) error {
	if err := a.adopt(ctx, a.rules); err != nil {
		return err
	}
	a.dirt = a.rules.takeDirty()
	if a.of != a.rules {
		a.dirt.all = true
	}
	for try := 1; ; {
		err := a.once(ctx)
		switch {
		case err == nil:
			return a.finish()
		case errors.Is(err, errAgain): // one scheduler less each time
		case isStale(err) && try < tries:
			try++
			a.known = nil
		default:
			a.known = nil
			a.rules.markDirty(a.dirt)
			return err
		}
	}
}

// adopt has the rules take on what the kernel has, before virtual servers are made for their marks.
func (b *Backend) adopt(ctx context.Context, r *Ruleset) error {
	adopter, ok := b.deps.Rules.(Adopter)
	if !ok || b.of == r {
		return nil
	}
	if err := adopter.Adopt(ctx, r.rules.Ruleset); err != nil {
		return err
	}
	r.omit()
	r.remark()
	return nil
}

// errAgain occurs when what is to be written has to be worked out anew.
var errAgain = errors.New("a scheduler is lacking")

func (a *run) once(ctx context.Context) error {
	start := time.Now()
	if err := a.look(ctx); err != nil {
		return err
	}
	start = a.result.Phases.Since(start, backend.Read)
	a.choose()
	d := a.compare()
	start = a.result.Phases.Since(start, backend.Compare)
	err := a.writeNew(ctx, d)
	a.result.Phases.Since(start, backend.Write)
	if err != nil {
		return err
	}
	a.linger(d)
	a.rulesFailed = a.applyRules(ctx)
	start = time.Now()
	if err = a.takeBack(ctx); err == nil {
		err = a.writeRest(ctx, d)
	}
	a.result.Phases.Since(start, backend.Write)
	return err
}

// look finds out what the kernel has, as far as that is not known.
func (a *run) look(ctx context.Context) error {
	if a.known != nil && (!a.req.Recheck || a.fresh) {
		return a.lookAtIdle()
	}
	clear(a.lacking)
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	a.known, a.fresh = s, true
	a.draining, a.idle, a.lingering = map[Server]struct{}{}, map[Server]struct{}{}, map[Server]struct{}{}
	if !a.begun {
		a.tellFormer()
	}
	return nil
}

// lookAtIdle reads destinations again that had no connections any more.
func (a *run) lookAtIdle() error {
	for s := range a.idle {
		h := a.known.servers[s]
		if h == nil {
			continue
		}
		all, err := a.destinations(nameOf(s))
		if err != nil {
			return err
		}
		h.destinations = all
	}
	return nil
}

// tellFormer tells of the frontends that virtual servers of ours served and nobody has now.
func (a *run) tellFormer() {
	for s, h := range a.known.servers {
		if h.ours && s.Mark == 0 && a.rules.server(s) == nil {
			a.result.Former = append(a.result.Former, a.known.frontend(s))
		}
	}
}

// choose decides what there is to compare.
func (a *run) choose() {
	a.todo = newDirt(false)
	if !a.fresh && !a.dirt.all {
		for s := range a.dirt.servers {
			a.todo.servers[s] = struct{}{}
		}
		for s := range a.idle {
			a.todo.servers[s] = struct{}{}
		}
		for addr := range a.dirt.addrs {
			a.todo.addrs[addr] = struct{}{}
		}
		return
	}
	for s := range a.rules.places {
		a.todo.servers[s] = struct{}{}
	}
	for s := range a.known.servers {
		a.todo.servers[s] = struct{}{}
	}
	for addr := range a.rules.claims {
		a.todo.addrs[addr] = struct{}{}
	}
	for addr := range a.known.addrs {
		a.todo.addrs[addr] = struct{}{}
	}
}

// applyRules writes the rules beside the virtual servers.
func (a *run) applyRules(ctx context.Context) error {
	if a.deps.Rules == nil {
		return nil
	}
	inner, err := a.deps.Rules.Apply(ctx, a.rules.rules.Ruleset, a.req)
	a.result.Written += inner.Written
	a.result.Restored = append(a.result.Restored, inner.Restored...)
	a.result.Former = append(a.result.Former, inner.Former...)
	a.result.Phases.Add(inner.Phases)
	a.unruled = inner.Refused
	for id, why := range inner.Refused {
		a.result.Refuse(id, why)
	}
	return err
}

// finish notes what an Apply has come to.
func (a *run) finish() error {
	a.of = a.rules
	a.note()
	rest := newDirt(false)
	for s := range a.todo.servers {
		if v := a.rules.places[s].winner(); v != nil && (a.req.Hold[v.Port] || a.result.Refused[v.Port] != nil) {
			rest.servers[s] = struct{}{}
		}
	}
	a.rules.markDirty(rest)
	err := errors.Join(a.rulesFailed, a.familyError(model.IPv4), a.familyError(model.IPv6))
	if err != nil {
		a.known = nil
		a.rules.markDirty(a.dirt)
		return err
	}
	a.begun = true
	return nil
}
