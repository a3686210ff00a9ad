package nftables

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/oracle"
	"sluice/internal/testkit/sample"
	"sluice/internal/trace"
)

func TestRulesMeanThePlan(t *testing.T) {
	oracle.Check(t, func(p *plan.Plan) *Ruleset { return Compile(p, DefaultOptions()) }, text)
}

func text(t rapid.TB, r *Ruleset) string {
	var b strings.Builder
	if err := r.Render(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestEndpointAtTheFrontend: an endpoint that listens at the very address of the frontend gets its connections, also
// from outside, though connection tracking calls nothing translated that stays what it is.
func TestEndpointAtTheFrontend(t *testing.T) {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "192.168.10.11"})
	s.ExternalIPs, s.Type, s.Ports[0].NodePort = sample.Addrs("192.168.10.11"), model.NodePort, 8080
	s.Ports[0].Port = 8080
	r := Compile(planOf(s, sl), DefaultOptions())
	for _, from := range []string{"203.0.113.5", "10.244.1.9"} {
		got := r.Trace(plan.Packet{From: netip.MustParseAddr(from), To: netip.MustParseAddrPort("192.168.10.11:8080"), Protocol: model.TCP})
		if got.Verdict != trace.Forward {
			t.Errorf("from %s: %s\n%s", from, got.Verdict, oracle.Steps(got))
		}
	}
}

func TestManyEndpointsGetEqualShares(t *testing.T) {
	const n = 330
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10"})
	for i := range n {
		sl.Endpoints = append(sl.Endpoints, endpointAt(netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)})))
	}
	r := Compile(planOf(s, sl), DefaultOptions())
	got := r.Trace(plan.Packet{From: netip.MustParseAddr("10.244.200.1"), To: netip.MustParseAddrPort("10.96.0.10:80"), Protocol: model.TCP})
	if len(got.Endpoints) != n {
		t.Fatalf("%d endpoints, want %d", len(got.Endpoints), n)
	}
	for _, e := range got.Endpoints {
		if off := math.Abs(e.Probability - 1.0/n); off > 1e-9 {
			t.Errorf("%s has share %v, off by %v", e.Address, e.Probability, off)
		}
	}
}
