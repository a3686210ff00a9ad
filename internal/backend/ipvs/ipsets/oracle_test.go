package ipsets

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/iptables/sets"
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

// Trace leaves out sources that nobody but this node has, and no packet from it: the addresses on the interface of ipvs.
func (b *balanced) Trace(pkt plan.Packet) trace.Result {
	_, bound := b.families[model.FamilyOf(pkt.From)].entries[ipvsIPs][sets.Entry{Addr: pkt.From}]
	if bound && !b.plan.Node.IsLocal(pkt.From) {
		return oracle.Decided(b.plan.Decide(pkt))
	}
	return b.TraceBalanced(pkt, b.pick)
}

func TestRulesMeanThePlan(t *testing.T) {
	oracle.Check(t, func(p *plan.Plan) *balanced {
		p.Node.GuardClusterIPs, p.Node.GuardAddresses = true, true
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
