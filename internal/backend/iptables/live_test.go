package iptables

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/iptables/rules"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/sample"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// TestKernelTakesEveryKind gives each kind of Service to both variants, as text and as a difference, and wants back
// the very text that was written.
func TestKernelTakesEveryKind(t *testing.T) {
	eachVariant(t, func(n *node) {
		for _, kind := range kinds {
			for f, addresses := range [][]string{{"10.96.0.10", "10.244.1.5", "10.244.2.5"}, {"fd00:96::a", "fd00:244:1::5", "fd00:244:2::5"}} {
				s, sl := sample.Service(model.Family(f), addresses)
				kind.edit(s, sl)
				n.check(Compile(planOf(s, sl), DefaultOptions()), model.Family(f))
			}
		}
	})
}

func (n *node) check(r *Ruleset, f model.Family) {
	n.Helper()
	n.do(func(ctx context.Context) error {
		text := []byte(familyText(n, r, f))
		return n.deps.Tables[f].(programs).Tools.Restore(ctx, families[f], text, iptexec.RestoreOptions{Flush: true, Test: true})
	})
	want := r.families[f].desired
	n.give(f, string(diff(want, n.contents(f)).text()))
	now := n.contents(f)
	for _, table := range tables {
		for name, text := range want.chains[table] {
			if diff := cmp.Diff(text, now[table][name]); diff != "" {
				n.Errorf("%s %s (-written +saved):\n%s", table, name, diff)
			}
		}
	}
	if d := diff(want, now); d.size() != 0 {
		n.Errorf("still to do:\n%s", d.text())
	}
}

// TestKernelTakesRandomPlans leads a kernel from one random plan to the next.
func TestKernelTakesRandomPlans(t *testing.T) {
	plans := rapid.Custom(func(t *rapid.T) *plan.Plan { return plan.Build(gen.Config(t), gen.Host(t), gen.Snapshot(t)) })
	eachVariant(t, func(n *node) {
		for seed := range 6 {
			opts := Options{MasqueradeBit: 31 - seed, TCPBeLiberal: seed%2 == 0}
			for _, f := range model.Families {
				n.check(Compile(plans.Example(seed), opts), f)
			}
		}
	})
}

// TestOddNamesAreOneWord: whatever is in a name stays in the comment.
func TestOddNamesAreOneWord(t *testing.T) {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
	s.Name.Name = `a" -j DROP 'b\` + "\nCOMMIT" + strings.Repeat("é", 200)
	sl.Service = s.Name
	eachVariant(t, func(n *node) { n.check(Compile(planOf(s, sl), DefaultOptions()), model.IPv4) })
	rs, err := rules.Parse(strings.NewReader(text(t, Compile(planOf(s, sl), DefaultOptions()))))
	if err != nil || rs.Table("nat") == nil {
		t.Errorf("the rendering cannot be read: %v", err)
	}
}
