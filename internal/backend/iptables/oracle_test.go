package iptables

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/backend/iptables/rules"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/trace"
)

// TestRulesMeanThePlan walks random packets through the rules of random plans: the verdict, the endpoints, their shares
// and who sees the client must be what the plan says.
func TestRulesMeanThePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan.Build(gen.Config(t), gen.Host(t), gen.Snapshot(t))
		r := Compile(p, DefaultOptions())
		for range 100 { // with the 100 checks that rapid makes unless told otherwise: 10,000 packets
			pkt := gen.Packet(t, p)
			want, got := decided(p.Decide(pkt)), r.Trace(pkt)
			if got.Verdict != want.Verdict || got.Uncertain || got.Error != "" || len(got.Alternatives) > 0 || !sameEndpoints(want.Endpoints, got.Endpoints) {
				t.Fatalf("%+v\nplan: %s %v\nrules: %s %v %v %s\n%s\n%s",
					pkt, want.Verdict, want.Endpoints, got.Verdict, got.Endpoints, got.Alternatives, got.Error, steps(got), text(t, r))
			}
		}
	})
}

// decided is the plan's answer in the form of a trace.
func decided(d plan.Decision) (r trace.Result) {
	r.Verdict = trace.Verdict(d.Action.String())
	for _, target := range d.Targets {
		r.Endpoints = append(r.Endpoints, trace.Endpoint{
			Address: target.AddrPort, Probability: target.Share, Masquerade: target.Masquerade,
		})
	}
	trace.SortEndpoints(r.Endpoints)
	return r
}

func sameEndpoints(want, got []trace.Endpoint) bool {
	return slices.EqualFunc(want, got, func(w, g trace.Endpoint) bool {
		return w.Address == g.Address && w.Masquerade == g.Masquerade && math.Abs(w.Probability-g.Probability) < 1e-9
	})
}

func steps(r trace.Result) (text string) {
	for _, s := range r.Steps {
		text += s.At + ": " + s.Rule + "\n"
	}
	return text
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
	s, sl := service(0, []string{"10.96.0.10"})
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
