package flow

import (
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Proxied is the flow as it is in a mode whose connections end at a proxy on the node. Every endpoint sees the node, which
// opens the connection to it, whether p masquerades or not; and nobody proxies SCTP, so that all are refused whose Service
// has endpoints for any.
func (f Flow) Proxied(p *plan.Plan) Flow {
	if f.Packet.Protocol == model.SCTP && hasEndpoints(p.Decide(f.Packet)) {
		f.Want = NewOutcome(plan.Reject)
	}
	f.Want.Targets = slices.Clone(f.Want.Targets)
	for i := range f.Want.Targets {
		f.Want.Targets[i].Masquerade = true
	}
	return f
}

// hasEndpoints reports whether some client at the frontend is forwarded.
func hasEndpoints(d plan.Decision) bool {
	if d.Port == nil || d.NotAllowed {
		return false
	}
	access := d.Port.Access(d.Frontend.Kind)
	return slices.ContainsFunc(access[:], func(r plan.Route) bool { return r.Action == plan.Forward })
}
