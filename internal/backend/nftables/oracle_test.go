package nftables

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
