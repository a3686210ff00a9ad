package flow

import (
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Proxied is the flow as it is in a mode whose connections end at a proxy on the node. Every endpoint sees the node, which
// opens the connection to it, whether the plan masquerades or not; and nobody proxies SCTP, so that it is refused.
func (f Flow) Proxied() Flow {
	if f.Want.Action == plan.Forward && f.Packet.Protocol == model.SCTP {
		f.Want = NewOutcome(plan.Reject)
	}
	f.Want.Targets = slices.Clone(f.Want.Targets)
	for i := range f.Want.Targets {
		f.Want.Targets[i].Masquerade = true
	}
	return f
}
