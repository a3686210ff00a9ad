package ipsets

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/oracle"
	"sluice/internal/trace"
)

// balanced is a Ruleset with the virtual servers that belong to it.
type balanced struct {
	*Ruleset
	plan  *plan.Plan
	marks [2]map[uint32]*plan.Port
}

// newBalanced compiles a plan.
func newBalanced(p *plan.Plan) *balanced {
	b := &balanced{Ruleset: compiled(p), plan: p, marks: [2]map[uint32]*plan.Port{{}, {}}}
	for _, port := range p.Sorted() {
		if mark, ok := b.Mark(port.ID); ok {
			b.marks[port.ID.Family][mark] = port
		}
	}
	return b
}

// pick is what virtual servers do: one of a mark has the endpoints of this node, one of a frontend those that pods and the
// node itself are sent to. A frontend that refuses them has none.
func (b *balanced) pick(to netip.AddrPort, p model.Protocol, mark uint32) ([]plan.Endpoint, bool) {
	if port := b.marks[model.FamilyOf(to.Addr())][mark]; port != nil {
		return port.Endpoints(port.External[plan.ClientOutside].List), true
	}
	port, f, ok := b.plan.Find(to, p)
	if !ok || port.Access(f.Kind)[plan.ClientHost].Action != plan.Forward {
		return nil, false
	}
	return port.Endpoints(port.Access(f.Kind)[plan.ClientHost].List), true
}

// Trace leaves out what ipvs mode does beyond the plan: the interface of ipvs has a Service's addresses, so that the kernel
// would take packets to their other ports, and these are refused but for ping and the health check.
func (b *balanced) Trace(pkt plan.Packet) trace.Result {
	d := b.plan.Decide(pkt)
	if b.bound(pkt.From) && !b.plan.Node.IsLocal(pkt.From) {
		return oracle.Decided(d) // nobody but this node has such a source
	}
	r := b.TraceBalanced(pkt, b.pick)
	bound := b.bound(pkt.To.Addr())
	if bound && d.Port == nil && d.Action == plan.Unhandled && r.Verdict == trace.Reject {
		r.Verdict = trace.Unhandled
	}
	if bound && d.Guard == plan.GuardPort && r.Verdict == trace.Unhandled && b.isHealthCheck(pkt) {
		r.Verdict = trace.Reject
	}
	return r
}

func (b *balanced) bound(a netip.Addr) bool {
	_, ok := b.families[model.FamilyOf(a)].entries[ipvsIPs][entryOf(a)]
	return ok
}

func (b *balanced) isHealthCheck(pkt plan.Packet) bool {
	_, ok := b.families[model.FamilyOf(pkt.To.Addr())].entries[healthCheck][portEntry(pkt.To.Port())]
	return ok && pkt.Protocol == model.TCP
}

func TestRulesMeanThePlan(t *testing.T) {
	oracle.Check(t, func(p *plan.Plan) *balanced {
		p.Node.GuardClusterIPs = true
		p.Node.NodePorts[model.IPv4].Loopback = false // no virtual server can
		// A cluster IP is never the node's own: it is on the interface of ipvs.
		p.Node.Addresses = slices.DeleteFunc(slices.Clone(p.Node.Addresses), func(a netip.Addr) bool {
			return netip.MustParsePrefix("10.96.0.0/16").Contains(a) || netip.MustParsePrefix("fd00:96::/64").Contains(a)
		})
		return newBalanced(p)
	}, func(t rapid.TB, b *balanced) string { return text(t, b.Ruleset) })
}

func text(t rapid.TB, r *Ruleset) string {
	t.Helper()
	var b strings.Builder
	if err := r.Render(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
