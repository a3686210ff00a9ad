package userspace

import (
	"fmt"
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/trace"
)

// Trace walks a new connection's first packet through the inner mode's rules, and from the proxy on to the endpoints.
func (r *Ruleset) Trace(pkt plan.Packet) trace.Result {
	return r.Through(r.inner.Trace(pkt), pkt.Protocol)
}

// Through continues a walk through rules that lead as the inner mode's do, such as those of a kernel: from the proxy on to
// the endpoints.
func (r *Ruleset) Through(walked trace.Result, protocol model.Protocol) trace.Result {
	res := walked
	res.Endpoints = r.beyond(walked.Endpoints, protocol, &res)
	res.Alternatives = slices.Clone(walked.Alternatives)
	for i := range res.Alternatives {
		a := &res.Alternatives[i]
		a.Endpoints = r.beyond(a.Endpoints, protocol, &res)
	}
	return res
}

// beyond puts the endpoints of a list in the place of the proxy's port, and says so in a step of the result. They see this
// node, which opens connections to them of its own.
func (r *Ruleset) beyond(in []trace.Endpoint, protocol model.Protocol, res *trace.Result) []trace.Endpoint {
	out := in[:0:0]
	for _, e := range in {
		t, ok := r.at(e.Address, protocol)
		if !ok {
			out = append(out, e)
			continue
		}
		res.Steps = append(res.Steps, step(t))
		total := 0
		for _, end := range t.Endpoints {
			total += int(end.Weight)
		}
		for _, end := range t.Endpoints {
			share := e.Probability * float64(end.Weight) / float64(total)
			out = append(out, trace.Endpoint{Address: end.AddrPort, Probability: share, Masquerade: true})
		}
	}
	trace.SortEndpoints(out)
	return out
}

// at finds the target whose port an address is.
func (r *Ruleset) at(to netip.AddrPort, protocol model.Protocol) (relay.Target, bool) {
	f := model.FamilyOf(to.Addr())
	if to.Addr() != r.nodeIP[f] {
		return relay.Target{}, false
	}
	t, ok := r.targets[r.ports.owner[socket{f, protocol, to.Port()}]]
	return t, ok && t.Listen.Port() == to.Port()
}

func step(t relay.Target) trace.Step {
	over := "the one endpoint"
	if n := len(t.Endpoints); n != 1 {
		over = fmt.Sprintf("%d endpoints", n)
	}
	return trace.Step{
		At:   fmt.Sprintf("userspace proxy at port %d/%s", t.Listen.Port(), t.Port.Protocol),
		Says: fmt.Sprintf("%s over %s; the endpoint sees this node, which opens the connection to it", how(t), over),
	}
}
