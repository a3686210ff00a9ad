package reconcile

import (
	"time"

	"sluice/internal/plan"
)

// refusals are the Service ports that the kernel did not take. Each waits by itself until it is tried again, so that
// none holds up the others. It reads no clock.
type refusals struct {
	period time.Duration // the longest wait
	ports  map[plan.PortID]refusal
	// former is what the kernel has of ports that it does not have as they are planned: those that changed since the
	// last Apply, and those refused.
	former map[plan.PortID]*plan.Port
	// failed are the families whose last Apply failed as a whole. Their refused ports are not tried again until one
	// succeeds, since they may be what it would fail by.
	failed [2]bool
}

type refusal struct {
	times   int // in a row, as the port is planned now
	retryAt time.Time
}

func newRefusals(period time.Duration) refusals {
	return refusals{period: period, ports: map[plan.PortID]refusal{}, former: map[plan.PortID]*plan.Port{}}
}

// hold are the ports that an Apply now is to leave alone, nil if there are none.
func (r *refusals) hold(now time.Time) map[plan.PortID]bool {
	var held map[plan.PortID]bool
	for id, refused := range r.ports {
		if !r.failed[id.Family] && !now.Before(refused.retryAt) {
			continue
		}
		if held == nil {
			held = make(map[plan.PortID]bool, len(r.ports))
		}
		held[id] = true
	}
	return held
}

// change is told of every change of the plan. A port that was refused is another now and is tried at once.
func (r *refusals) change(c plan.Change, now time.Time) {
	if _, ok := r.ports[c.ID]; ok {
		r.ports[c.ID] = refusal{retryAt: now}
	}
	if _, ok := r.former[c.ID]; !ok && c.Old != nil {
		r.former[c.ID] = c.Old
	}
}

// settle is told how an Apply ended. It tells which ports are refused that were not, and which the kernel takes that it
// had refused: what it had of them until now is Old.
func (r *refusals) settle(o outcome) (fresh []plan.PortID, taken []plan.Change) {
	r.failed = o.failed
	settled := func(id plan.PortID) bool {
		return o.Refused[id] == nil && !o.held[id] && !o.failed[id.Family]
	}
	for id := range r.ports {
		if settled(id) {
			delete(r.ports, id)
			taken = append(taken, plan.Change{ID: id, Old: r.former[id]})
		}
	}
	was := r.former
	r.former = map[plan.PortID]*plan.Port{} // a new one: to walk a map that once held many costs what it held
	for id, old := range was {
		if !settled(id) {
			r.former[id] = old
		}
	}
	for id := range o.Refused {
		before, known := r.ports[id]
		times := before.times + 1
		r.ports[id] = refusal{times, o.end.Add(backoff(times, firstWait, r.period))}
		if !known {
			fresh = append(fresh, id)
		}
	}
	return fresh, taken
}

// parts are what those that are refused now belong to.
func (r *refusals) parts() map[part]bool {
	of := make(map[part]bool, len(r.ports))
	for id := range r.ports {
		of[part{id.Service, id.Family}] = true
	}
	return of
}

// next is when the first of them is due, zero if none is waiting.
func (r *refusals) next() (at time.Time) {
	for id, refused := range r.ports {
		if !r.failed[id.Family] && (at.IsZero() || refused.retryAt.Before(at)) {
			at = refused.retryAt
		}
	}
	return at
}
