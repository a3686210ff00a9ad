package differential_test

import (
	"slices"

	"sluice/internal/model"
)

// finding is a question that the two sides answered otherwise.
type finding struct {
	question
	mode             string
	claims           int // Service ports that want the address
	sluice, upstream answers
}

// intended is an entry of the list of intended differences: a row of docs/differences.md.
type intended struct {
	// row is the first cell of that row.
	row string
	// mode is the one mode in which it shows; empty: both.
	mode string
	// explains reports whether a finding is this difference; nil: none can be, for the reason.
	explains func(f finding) bool
	unseen   string
}

// list has all of them.
func list() []intended {
	return []intended{
		{row: "Two Services claim one address and port", explains: func(f finding) bool { return f.claims > 1 }},
		{
			row: "`loadBalancerSourceRanges` and no endpoint", mode: "iptables", explains: func(f finding) bool {
				return f.target == loadBalancer && f.guarded() && f.sluice.only("drop") && (f.upstream.only("reject") || f.client == process && f.upstream.only("unhandled"))
			},
		},
		{
			row: "The node itself connects to an external or load balancer IP without endpoints", mode: "iptables", explains: func(f finding) bool {
				return f.client == process && (f.target == externalIP || f.target == loadBalancer) && f.sluice.only("reject") && f.upstream.only("unhandled")
			},
		},
		{
			row: "Node port without endpoints", mode: "iptables", explains: func(f finding) bool {
				return f.target == loopback && f.family == model.IPv6 && (f.upstream.only("reject") || f.upstream.only("drop"))
			},
		},
		{
			row: "One endpoint address in two EndpointSlices, both live", explains: func(f finding) bool {
				return slices.ContainsFunc(f.subject.members, func(m member) bool { return m.again })
			},
		},
		{row: "An endpoint that connects to itself", mode: "nftables", explains: func(f finding) bool {
			return f.client == endpointOutside
		}},
	}
}

// guarded is whether a load balancer is not for everyone.
func (f finding) guarded() bool { return len(f.subject.service.Spec.LoadBalancerSourceRanges) > 0 }

// explain finds the entry that explains a finding.
func explain(f finding) (intended, bool) {
	for _, i := range list() {
		if i.explains != nil && (i.mode == "" || i.mode == f.mode) && i.explains(f) {
			return i, true
		}
	}
	return intended{}, false
}
