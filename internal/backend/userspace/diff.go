package userspace

import (
	"maps"
	"slices"

	"sluice/internal/plan"
	"sluice/internal/relay"
)

// unheard are the targets that the proxy has not been told of as they are now, in order.
func (r *Ruleset) unheard() (ts []relay.Target) {
	for k := range r.pending {
		if t, ok := r.targets[k]; ok {
			ts = append(ts, t)
		}
	}
	slices.SortFunc(ts, func(a, b relay.Target) int { return a.Compare(b.Key) })
	return ts
}

// unneeded are the lists that the proxy listens for in vain, once unheard has none; but for those of Service ports that
// are to be kept.
func (r *Ruleset) unneeded(keep func(plan.PortID) bool) (ks []relay.Key) {
	for k := range r.pending {
		if !keep(k.Port) {
			ks = append(ks, k)
		}
	}
	return ks
}

// without is a set less some of it; the caller's stays as it is.
func without(set map[plan.PortID]bool, less map[plan.PortID]error) map[plan.PortID]bool {
	set = maps.Clone(set)
	maps.DeleteFunc(set, func(id plan.PortID, _ bool) bool { return less[id] != nil })
	return set
}
