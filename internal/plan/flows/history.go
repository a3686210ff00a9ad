package flows

import (
	"net/netip"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// History remembers the UDP frontends that the plan no longer has, and whom their clients were sent to, from a change
// until the entries that it left have been removed. The zero value remembers nothing.
type History struct {
	frontends map[plan.Key]*servers
	// addresses are those at which node ports were served.
	addresses map[netip.Addr]bool
	due       bool
	// blind is set as long as nothing is known of what was before this process.
	blind bool
	// endpoints are all of the plan's, by address, once they were asked for while blind.
	endpoints map[netip.Addr]bool
}

// servers are the endpoints that a frontend had.
type servers struct {
	all   bool // unknown, so any
	addrs map[netip.AddrPort]bool
}

// Due reports whether something happened since [History.Forget] that may have left stale entries.
func (h *History) Due() bool { return h.due }

// Note remembers what changes took away; before is the node as it was.
func (h *History) Note(before plan.Node, changes plan.Changes) {
	h.endpoints = nil
	for _, c := range changes.Ports {
		if c.ID.Protocol != model.UDP {
			continue
		}
		h.due = true
		if c.Old != nil {
			h.noteOld(c.Old)
		}
	}
	if changes.Node {
		h.due = true
		h.noteNode(before)
	}
}

func (h *History) noteOld(old *plan.Port) {
	for _, f := range old.Frontends {
		s := h.at(f.Key)
		for _, list := range [][]plan.Endpoint{old.Cluster, old.Local, old.Draining} {
			for _, e := range list {
				s.addrs[e.AddrPort] = true
			}
		}
	}
}

func (h *History) noteNode(n plan.Node) {
	if h.addresses == nil {
		h.addresses = map[netip.Addr]bool{}
	}
	for _, a := range n.Addresses {
		if n.NodePorts[model.FamilyOf(a)].Serves(a) {
			h.addresses[a] = true
		}
	}
}

// NoteFrontends remembers frontends that rules in the kernel served, whoever their endpoints were: those of a Service
// that went while nobody watched.
func (h *History) NoteFrontends(keys []plan.Key) {
	for _, k := range keys {
		if k.Protocol == model.UDP {
			h.due = true
			h.at(k).all = true
		}
	}
}

// NoteRestored has all entries looked at once: while rules were missing, first packets were not translated.
func (h *History) NoteRestored() { h.due = true }

// NoteStart has all entries looked at once, since nobody knows what happened before.
func (h *History) NoteStart() { h.due, h.blind = true, true }

// Forget is called when everything stale has been removed after the rules were written.
func (h *History) Forget() { *h = History{} }

func (h *History) at(k plan.Key) *servers {
	if h.frontends == nil {
		h.frontends = map[plan.Key]*servers{}
	}
	if h.frontends[k] == nil {
		h.frontends[k] = &servers{addrs: map[netip.AddrPort]bool{}}
	}
	return h.frontends[k]
}

// served reports whether f went to a former frontend and was sent on by it.
func (h *History) served(p *plan.Plan, f Flow) bool {
	to := f.To.Addr()
	if s := h.frontends[plan.Key{Addr: to, Protocol: model.UDP, Port: f.To.Port()}]; s.had(f.Server) {
		return true
	}
	if !p.Node.IsLocal(to) && !h.addresses[to] {
		return false
	}
	nodePort := plan.NodePortKey(model.FamilyOf(to), model.UDP, f.To.Port())
	if h.frontends[nodePort].had(f.Server) {
		return true
	}
	// The node port is still there, but no longer at this address.
	port, _, ok := p.Owner(nodePort)
	if !ok || !h.addresses[to] {
		return false
	}
	_, ok = endpoint(port, f.Server)
	return ok
}

// mayHaveServed reports whether f may have gone to a frontend that an earlier process took away. One that was killed
// between writing rules and removing entries leaves no rule to know it by, and a client that keeps sending would keep
// the entry alive for ever. So, at the start alone, what was translated to a pod counts. What is for the node itself
// stays, since a port there may be a container's that somebody else keeps.
func (h *History) mayHaveServed(p *plan.Plan, f Flow) bool {
	return h.blind && !p.Node.IsLocal(f.To.Addr()) && h.isPod(p, f.Server.Addr())
}

// isPod reports whether an address is in the range of the pods, or that of an endpoint.
func (h *History) isPod(p *plan.Plan, a netip.Addr) bool {
	if p.Node.Detect[model.FamilyOf(a)].Matches(a, "") {
		return true
	}
	if h.endpoints == nil {
		h.endpoints = endpointAddresses(p)
	}
	return h.endpoints[a]
}

func endpointAddresses(p *plan.Plan) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, port := range p.Ports {
		for _, list := range [][]plan.Endpoint{port.Cluster, port.Local, port.Draining} {
			for _, e := range list {
				all[e.Addr()] = true
			}
		}
	}
	return all
}

func (s *servers) had(server netip.AddrPort) bool {
	return s != nil && (s.all || s.addrs[server])
}
