package nftables

import (
	"slices"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/nft/wire"
)

// routeLocalnet has the kernel route loopback addresses, now that the rules guard them. It tells as well if the kernel
// could not be told to route them no longer.
func (a *run) routeLocalnet() error {
	err := a.unrouted
	if a.rules.structure.localhost && a.deps.RouteLocalnet != nil && (!a.localhost || a.req.Recheck) {
		err = a.deps.RouteLocalnet(true)
		a.localhost = err == nil
	}
	if err != nil {
		return &backend.FamilyError{Family: model.IPv4, Err: err}
	}
	return nil
}

// unrouteBefore has the kernel no longer route loopback addresses if the table guards them, or somebody took away what
// did, and the Ruleset, which is about to be written, serves no node ports there. If that fails there is a guard all the
// same, and all else is written.
func (a *run) unrouteBefore(guarded bool) {
	a.unrouted = nil
	if (guarded || a.localhost) && !a.rules.structure.localhost {
		a.unrouted = a.unroute()
	}
	a.rules.setRouted(a.unrouted != nil)
}

// unroute has the kernel no longer route loopback addresses.
func (b *Backend) unroute() error {
	b.localhost = false
	if b.deps.RouteLocalnet == nil {
		return nil
	}
	return b.deps.RouteLocalnet(false)
}

// setRouted has the Ruleset guard loopback addresses, or not, while no node ports are served there.
func (r *Ruleset) setRouted(on bool) {
	if r.structure.routed != on {
		r.structure.routed, r.dirty.table = on, true
	}
}

// guardsLoopback reports whether there is a table, and the rule in it that guards loopback addresses.
func (f *frame) guardsLoopback() bool {
	if f == nil {
		return false
	}
	c := f.chains["filter-input"]
	guard := (&structure{localhost: true}).input()[0]
	return c != nil && slices.Contains(c.rules, wire.Hash(&guard))
}
