package nftables

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/trace"
)

// TestRulesMeanThePlan walks random packets through the tables of random plans: the verdict, the endpoints, their shares
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
	s, sl := webService(model.IPv4, []string{"10.96.0.10", "192.168.10.11"})
	s.ExternalIPs, s.Type, s.Ports[0].NodePort = addrs("192.168.10.11"), model.NodePort, 8080
	s.Ports[0].Port = 8080
	r := Compile(planOf(s, sl), DefaultOptions())
	for _, from := range []string{"203.0.113.5", "10.244.1.9"} {
		got := r.Trace(plan.Packet{From: netip.MustParseAddr(from), To: netip.MustParseAddrPort("192.168.10.11:8080"), Protocol: model.TCP})
		if got.Verdict != trace.Forward {
			t.Errorf("from %s: %s\n%s", from, got.Verdict, steps(got))
		}
	}
}

func TestManyEndpointsGetEqualShares(t *testing.T) {
	const n = 330
	s, sl := webService(model.IPv4, []string{"10.96.0.10"})
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
