package ipvs

import (
	"net/netip"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

// Trace walks a new connection's first packet through the rules, and to the virtual server that they let it come to.
func (r *Ruleset) Trace(pkt plan.Packet) trace.Result {
	d, ok := r.rules.Ruleset.(Delivery)
	if !ok {
		return trace.Result{Verdict: trace.Unhandled, Error: "the rules beside the virtual servers are not known"}
	}
	return d.TraceBalanced(pkt, r.endpointsAt)
}

// Rules are those beside the virtual servers.
func (r *Ruleset) Rules() backend.Ruleset { return r.rules.Ruleset }

// endpointsAt are those of a virtual server, in shares of their weights: all schedulers spread connections like that in
// the long run, if they do not go by what only the kernel knows.
func (r *Ruleset) endpointsAt(to netip.AddrPort, protocol model.Protocol, mark uint32) ([]plan.Endpoint, bool) {
	at := Server{Key: plan.Key{Addr: to.Addr(), Protocol: protocol, Port: to.Port()}}
	if mark != 0 {
		if v := r.server(markServer(model.FamilyOf(to.Addr()), mark)); v != nil {
			return v.Endpoints, true
		}
		// The kernel looks for the mark first, and for the address then.
	}
	if v := r.server(at); v != nil {
		return v.Endpoints, true
	}
	return nil, false
}
