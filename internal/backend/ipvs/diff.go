package ipvs

import (
	"maps"
	"net/netip"
	"slices"

	"sluice/internal/model"
)

// delta is what turns what the kernel has into what is wanted. What is new comes before the rules, what goes after them,
// so that the rules never lead where there is nothing.
type delta struct {
	before, after []operation
	// lacking are schedulers that the kernel does not have.
	lacking map[string]bool
	// protocols are those of marks that nobody wants any more, as far as they are known.
	protocols map[Server]model.Protocol
}

func (d *delta) first(o operation) { d.before = append(d.before, o) }

func (d *delta) last(o operation) { d.after = append(d.after, o) }

// server compares a virtual server. Either may be nil.
func (d *delta) server(at Server, want *VirtualServer, have *held) {
	switch {
	case want != nil:
		d.wanted(want, have)
	case have != nil && have.ours:
		d.unwanted(at, have)
	}
}

func (d *delta) wanted(want *VirtualServer, have *held) {
	o := operation{server: want.Server, port: want.Port, scheduling: d.scheduling(want)}
	switch {
	case have == nil:
		o.verb, have = addServer, &held{}
		d.first(o)
	case have.Scheduling != o.scheduling || !have.signed || have.grouped:
		o.verb = setServer
		d.first(o)
	}
	for _, e := range want.Endpoints {
		o.destination, o.weight = e.AddrPort, uint32(e.Weight)
		switch old, found := have.destinations[e.AddrPort]; {
		case !found:
			o.verb = addDestination
			d.first(o)
		case old.weight != o.weight || old.elsewise:
			o.verb = setDestination
			d.first(o)
		}
	}
	for _, a := range sorted(have.destinations) {
		if want.weight(a) == 0 {
			d.drain(want.Server, want, a, have.destinations[a])
		}
	}
}

// scheduling is the best one that the kernel has, or that nobody has tried.
func (d *delta) scheduling(want *VirtualServer) Scheduling {
	for _, s := range want.Schedulings {
		if !d.lacking[s.Scheduler] {
			return s
		}
	}
	return want.Schedulings[len(want.Schedulings)-1]
}

// unwanted takes away what nobody has any more: a virtual server goes when its last destination does.
func (d *delta) unwanted(at Server, have *held) {
	left := sorted(have.destinations)
	stays := func(a netip.AddrPort) bool { return !d.goes(at, nil, a, have.destinations[a]) }
	if !slices.ContainsFunc(left, stays) {
		d.last(operation{verb: deleteServer, server: at})
		return
	}
	for _, a := range left {
		d.drain(at, nil, a, have.destinations[a])
	}
}

// drain takes a destination away, or gives it no new connections while it has some.
func (d *delta) drain(at Server, want *VirtualServer, to netip.AddrPort, have destination) {
	o := operation{server: at, destination: to}
	if want != nil {
		o.port = want.Port
	}
	switch {
	case d.goes(at, want, to, have):
		o.verb = deleteDestination
		d.last(o)
	case have.weight > 0:
		o.verb = setDestination
		d.last(o)
	}
}

// goes reports whether a destination that gets no new connections can be taken away: because it has none, or because
// what it has are none that last.
func (d *delta) goes(at Server, want *VirtualServer, to netip.AddrPort, have destination) bool {
	idle := have.weight == 0 && !have.busy
	return idle || d.protocol(at, want) == model.UDP && !want.drains(to)
}

// protocol is that of a virtual server. The kernel does not say which one the clients of a mark speak; where nobody else
// does, it may be one that has connections.
func (d *delta) protocol(at Server, want *VirtualServer) model.Protocol {
	switch {
	case at.Mark == 0:
		return at.Protocol
	case want != nil:
		return want.Port.Protocol
	}
	return d.protocols[at]
}

func sorted(m map[netip.AddrPort]destination) []netip.AddrPort {
	return slices.SortedFunc(maps.Keys(m), netip.AddrPort.Compare)
}
