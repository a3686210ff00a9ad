package iptables

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
)

// TestUpdateEqualsCompile changes a plan at random and compares with compiling it anew, after each change.
func TestUpdateEqualsCompile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := gen.Config(t)
		cfg.AnswerPing = rapid.Bool().Draw(t, "answerPing")
		p := plan.NewPlanner(cfg)
		p.SetHost(gen.Host(t))
		p.Update(model.Delta(*gen.Snapshot(t)))
		r := Compile(p.Plan(), DefaultOptions())
		for range rapid.IntRange(1, 10).Draw(t, "changes") {
			switch rapid.IntRange(0, 7).Draw(t, "what changes") {
			case 0, 1:
				r.Update(p.Plan(), p.SetHost(gen.Host(t)))
			case 2:
				cfg.AnswerPing = !cfg.AnswerPing
				r.Update(p.Plan(), p.SetConfig(cfg))
			default:
				r.Update(p.Plan(), p.Update(gen.Delta(t)))
			}
			if diff := cmp.Diff(text(t, Compile(p.Plan(), DefaultOptions())), text(t, r)); diff != "" {
				t.Fatalf("-compiled +updated:\n%s", diff)
			}
			if diff := cmp.Diff(p.Plan().Node.Addresses, r.families[0].node.Addresses, cmp.Comparer(sameAddr)); diff != "" {
				t.Fatalf("addresses of the node, -plan +rules:\n%s", diff)
			}
		}
	})
}

func sameAddr(a, b netip.Addr) bool { return a == b }

func text(t rapid.TB, r *Ruleset) string {
	return familyText(t, r, model.IPv4) + familyText(t, r, model.IPv6)
}

func familyText(t rapid.TB, r *Ruleset, f model.Family) string {
	var b strings.Builder
	if err := r.RenderFamily(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestProbability: what is written is what the kernel keeps, and endpoints get equal shares.
func TestProbability(t *testing.T) {
	const one = 1 << 31
	for _, n := range []int{2, 3, 7, 10, 330, 1000, 5000} {
		left := 1.0
		for i := range n {
			share := left
			if n-i > 1 {
				p, err := strconv.ParseFloat(probability(1, n-i), 64)
				if err != nil {
					t.Fatal(err)
				}
				kept := math.RoundToEven(p*one) / one
				if math.Abs(kept*one-p*one) > 0.02 {
					t.Errorf("1/%d is written as %v, which the kernel keeps as %v", n-i, p, kept)
				}
				share, left = left*kept, left*(1-kept)
			}
			if off := math.Abs(share - 1/float64(n)); off > 1.0/one {
				t.Errorf("endpoint %d of %d has share %v, off by %v", i, n, share, off)
			}
		}
	}
}
