package ipsets

import (
	"net/netip"
	"testing"

	"sluice/internal/iptables/rules"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/oracle"
	"sluice/internal/testkit/sample"
)

// Tables of legacy iptables change one after the other. On the way from mode iptables, whose table nat translates, clients get
// what the plan says in between as well: a connection that a virtual server has taken keeps its endpoint.
func TestTablesChangeInOrder(t *testing.T) {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	external(s)
	s.ExternalPolicy, s.SourceRanges = model.PolicyLocal, nil
	b := newBalanced(sample.Plan(plan.Config{}, s, sl))
	f := b.families[model.IPv4]
	want := f.tables
	f.tables = translating("10.244.1.5:8080")
	for _, name := range tableNames {
		*f.tables.AddTable(name) = *want.Table(name)
		for _, to := range []string{"198.51.100.1:80", "192.0.2.1:80", "192.168.10.11:30080"} {
			pkt := plan.Packet{Protocol: model.TCP, From: netip.MustParseAddr("203.0.113.9"), To: netip.MustParseAddrPort(to)}
			if got := b.Trace(pkt); !oracle.Same(oracle.Decided(b.plan.Decide(pkt)), got) {
				t.Errorf("with tables up to %s, %s: %s", name, to, oracle.Short(got))
			}
		}
	}
}

// translating are rules of another mode that send everybody to one endpoint.
func translating(endpoint string) *rules.Ruleset {
	rs := &rules.Ruleset{}
	c := rs.AddTable("nat").AddChain(chainPrerouting)
	c.Policy = "ACCEPT"
	c.Add(rules.Rule("-p tcp -j DNAT --to-destination " + endpoint))
	return rs
}
