package oracle

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/trace"
)

// Rules are a compiled plan.
type Rules interface {
	Trace(plan.Packet) trace.Result
}

// Check walks random packets through the rules of random plans: the verdict, the endpoints, their shares and who sees the
// client must be what the plan says. What compile returns is printed by text where they are not.
func Check[R Rules](t *testing.T, compile func(*plan.Plan) R, text func(rapid.TB, R) string) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		p := plan.Build(gen.Config(t), gen.Host(t), gen.Snapshot(t))
		r := compile(p)
		for range 100 { // with the 100 checks that rapid makes unless told otherwise: 10,000 packets
			pkt := gen.Packet(t, p)
			if want, got := Decided(p.Decide(pkt)), r.Trace(pkt); !Same(want, got) {
				t.Fatalf("%+v\nplan: %s\nrules: %s %s\n%s\n%s", pkt, Short(want), Short(got), got.Error, Steps(got), text(t, r))
			}
		}
	})
}

// Decided is the plan's answer in the form of a trace.
func Decided(d plan.Decision) (r trace.Result) {
	r.Verdict = trace.Verdict(d.Action.String())
	for _, target := range d.Targets {
		r.Endpoints = append(r.Endpoints, trace.Endpoint{
			Address: target.AddrPort, Probability: target.Share, Masquerade: target.Masquerade,
		})
	}
	trace.SortEndpoints(r.Endpoints)
	return r
}

// Same reports whether a walk came to what is wanted, and to nothing else.
func Same(want, got trace.Result) bool {
	if got.Verdict != want.Verdict || got.Uncertain || got.Error != "" || len(got.Alternatives) > 0 {
		return false
	}
	return slices.EqualFunc(want.Endpoints, got.Endpoints, func(w, g trace.Endpoint) bool {
		return w.Address == g.Address && w.Masquerade == g.Masquerade && math.Abs(w.Probability-g.Probability) < 1e-9
	})
}

// Steps are those of a trace, a line each.
func Steps(r trace.Result) string {
	var text strings.Builder
	for _, s := range r.Steps {
		text.WriteString(s.At + ": " + s.Rule + "\n")
	}
	return text.String()
}

// Short is what a result comes to, on one line; "m" marks masqueraded endpoints.
func Short(r trace.Result) string {
	var text strings.Builder
	text.WriteString(string(r.Verdict))
	for _, e := range r.Endpoints {
		fmt.Fprintf(&text, " %s=%.4g", e.Address, e.Probability)
		if e.Masquerade {
			text.WriteString("m")
		}
	}
	if r.Uncertain {
		text.WriteString(" ?")
	}
	for _, a := range r.Alternatives {
		fmt.Fprintf(&text, " or %s=%.4g", a.Verdict, a.Probability)
	}
	return text.String()
}
