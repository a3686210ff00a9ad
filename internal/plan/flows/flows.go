package flows

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Flow is an entry of connection tracking for UDP.
type Flow struct {
	// Client sent the first packet, and To is where it sent it.
	Client, To netip.AddrPort
	// Server is where replies come from: To itself, unless the packet was translated.
	Server netip.AddrPort
}

func (f Flow) translated() bool { return f.Server != f.To }

// Reason is why a Flow is stale.
type Reason string

// The reasons. Fresh is none.
const (
	Fresh           Reason = ""
	NeverTranslated Reason = "it began before there was an endpoint"
	EndpointGone    Reason = "its endpoint serves this frontend's clients no longer"
	NotAllowed      Reason = "its source may not use this address"
	FrontendGone    Reason = "its frontend is gone"
)

// Stale says why p would decide f otherwise today; [Fresh] if it would not. h tells of frontends that p no longer has.
//
// kube-proxy keeps what goes to any serving endpoint, whatever the traffic policy. With policy Local that keeps
// clients on other nodes' endpoints which the policy denies them, so here the policy counts. It removes flows by the
// node port's number alone, whatever their address; here the address must be one at which this node serves it.
func (h *History) Stale(p *plan.Plan, f Flow) Reason {
	port, frontend, ok := p.Find(f.To, model.UDP)
	switch {
	case !ok && f.translated() && (h.served(p, f) || h.mayHaveServed(p, f)):
		return FrontendGone
	case !ok:
		return Fresh
	}
	routes := possibleRoutes(p, port.Access(frontend.Kind), f.Client.Addr())
	if !f.translated() {
		return untranslated(port, routes, f)
	}
	if !port.Allows(frontend, f.Client.Addr()) {
		return NotAllowed
	}
	if !slices.ContainsFunc(routes, func(r plan.Route) bool { return keeps(port, r, f.Server) }) {
		return EndpointGone
	}
	return Fresh
}

// untranslated is for a flow that met no rule of ours. Where a new one would not be forwarded either, nothing is to be
// gained; where the frontend is the very address of an endpoint, there is nothing to translate.
func untranslated(port *plan.Port, routes []plan.Route, f Flow) Reason {
	_, same := endpoint(port, f.To)
	forwards := slices.ContainsFunc(routes, func(r plan.Route) bool { return r.Action == plan.Forward })
	if forwards && !same {
		return NeverTranslated
	}
	return Fresh
}

// keeps reports whether a flow to server may go on by route r. It need not be in the route's list: a terminating
// endpoint keeps the connections that it has for as long as it serves.
func keeps(port *plan.Port, r plan.Route, server netip.AddrPort) bool {
	e, ok := endpoint(port, server)
	localOnly := r.List == plan.ListLocal || r.Action == plan.Drop
	return ok && (e.Local || !localOnly)
}

// possibleRoutes are those that the client may have. Where pods are told by their interface, an entry does not say
// whether its client was one.
func possibleRoutes(p *plan.Plan, access plan.Access, client netip.Addr) []plan.Route {
	pkt := plan.Packet{From: client}
	routes := []plan.Route{access[p.Node.Client(pkt)]}
	if p.Node.Detect[model.FamilyOf(client)].Interface != "" {
		routes = append(routes, access[plan.ClientPod])
	}
	return routes
}

// endpoint finds an endpoint of port that serves.
func endpoint(port *plan.Port, addr netip.AddrPort) (plan.Endpoint, bool) {
	for _, list := range [][]plan.Endpoint{port.Cluster, port.Local, port.Draining} {
		at, found := slices.BinarySearchFunc(list, addr, func(e plan.Endpoint, a netip.AddrPort) int { return e.Compare(a) })
		if found {
			return list[at], true
		}
	}
	return plan.Endpoint{}, false
}
