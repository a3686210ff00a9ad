package iptables

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/iptables/rules"
	"sluice/internal/plan"
	"sluice/internal/testkit/oracle"
	"sluice/internal/testkit/sample"
)

func TestRulesMeanThePlan(t *testing.T) {
	oracle.Check(t, func(p *plan.Plan) *Ruleset { return Compile(p, DefaultOptions()) }, text)
}

// TestRulesAreWhatIsRendered: the walk is over the rules that are written.
func TestRulesAreWhatIsRendered(t *testing.T) {
	r := webRules()
	for f, family := range r.families {
		rendered, err := rules.Parse(strings.NewReader(familyText(t, r, family.family)))
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range rendered.Tables {
			for _, c := range table.Chains {
				if diff := cmp.Diff(c.Rules, family.rules().Table(table.Name).Chain(c.Name).Rules); diff != "" {
					t.Errorf("family %d %s %s (-rendered +walked):\n%s", f, table.Name, c.Name, diff)
				}
			}
		}
	}
}

func TestManyEndpointsGetEqualShares(t *testing.T) {
	const n = 330
	s, sl := sample.Service(0, []string{"10.96.0.10"})
	for i := range n {
		e := sl.Endpoints
		sl.Endpoints = append(e, endpointAt(netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)})))
	}
	r := Compile(planOf(s, sl), DefaultOptions())
	got := r.Trace(plan.Packet{From: netip.MustParseAddr("10.244.200.1"), To: netip.MustParseAddrPort("10.96.0.10:80"), Protocol: 6})
	if len(got.Endpoints) != n {
		t.Fatalf("%d endpoints, want %d", len(got.Endpoints), n)
	}
	for _, e := range got.Endpoints {
		if off := math.Abs(e.Probability - 1.0/n); off > 1.0/(1<<31) {
			t.Errorf("%s has share %v, off by %v", e.Address, e.Probability, off)
		}
	}
}
