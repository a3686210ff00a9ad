package flow

import (
	"slices"

	"sluice/internal/plan"
)

// Virtual is the flow as it is where virtual servers spread connections. A client that asks an address of its own for
// another port is not told from one that asks for the endpoint itself, so it is not masqueraded; ipvs translates the answer
// all the same.
func (f Flow) Virtual(p *plan.Plan) Flow {
	if f.Packet.From != f.Packet.To.Addr() || p.Decide(f.Packet).Route.Masquerade {
		return f
	}
	f.Want.Targets = slices.Clone(f.Want.Targets)
	for i := range f.Want.Targets {
		f.Want.Targets[i].Masquerade = false
	}
	return f
}

// FromService reports whether a packet comes from an address of a Service that no interface of the node has. Where virtual
// servers are, it is the node's, which the plan does not know.
func FromService(p *plan.Plan, pkt plan.Packet) bool {
	return !p.Node.IsLocal(pkt.From) && slices.ContainsFunc(p.Sorted(), func(port *plan.Port) bool {
		return slices.ContainsFunc(port.Frontends, func(f plan.Frontend) bool { return f.Addr == pkt.From })
	})
}
