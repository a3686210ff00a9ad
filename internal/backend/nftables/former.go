package nftables

import (
	"net/netip"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
)

// isOfClients reports whether rules fill a set.
func isOfClients(s setID) bool { return s.ofIPv4() == setAffinity }

// isNumbered reports whether a set tells of numbers that a Ruleset may use again; see [held].
func isNumbered(s setID) bool {
	switch s.ofIPv4() {
	case setEndpoints, setAffineEndpoints, setMarks:
		return true
	}
	return isRoutes(s) || s == setBuckets
}

// has reports whether the table has a set of ours, of any size.
func (f *frame) has(set setID) bool {
	have, ok := f.sets[set.name()]
	def := sets[set]
	def.Size = have.Size
	return ok && have.Is(&def)
}

// former lists the frontends that the table leads to endpoints and r does not. They are what a Service leaves that went
// while nobody watched; connections by way of it may still be open.
func (h *held) former(r *Ruleset) (keys []plan.Key) {
	served := make(map[setKey]bool, len(h.routes))
	for _, p := range r.ports {
		for set, e := range p.frontends {
			if isRoutes(set) && route(nft.NewReader(e.Data).Uint32()).list() != 0 {
				served[frontendOf(set, e.Key)] = true
			}
		}
	}
	for at, route := range h.routes {
		k := frontendOf(at.set, at.key)
		if route.list() != 0 && !served[k] {
			served[k] = true // there may be another route, for clients outside
			keys = append(keys, keyOf(k))
		}
	}
	return keys
}

// frontendOf is a frontend's place in the map of routes for all clients.
func frontendOf(set setID, key nft.Value) setKey {
	switch set.ofIPv4() {
	case setOutside:
		set = setServices.of(set.family())
	case setOutsideNodePorts:
		set = setNodePorts.of(set.family())
	}
	return setKey{set: set, key: key}
}

// keyOf reads a frontend.
func keyOf(k setKey) plan.Key {
	f, r := k.set.family(), nft.NewReader(k.key)
	addr := f.Unspecified()
	if k.set.ofIPv4() == setServices {
		addr = map[model.Family]func() netip.Addr{model.IPv4: r.Addr4, model.IPv6: r.Addr16}[f]()
	}
	return plan.Key{Addr: addr, Protocol: model.Protocol(r.Proto()), Port: r.Port()}
}
