package iptables

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
)

// Whatever is written, refused, or done by others, the rules told of are those that the kernel has, or none are.
func TestRulesAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan.NewPlanner(gen.Config(t))
		p.SetHost(gen.Host(t))
		p.Update(model.Delta(*gen.Snapshot(t)))
		b, fakes := newTestBackend(rapid.Bool().Draw(t, "legacy"))
		r := b.Compile(p.Plan()).(*Ruleset)
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			r.Update(p.Plan(), p.Update(gen.Delta(t)))
			if rapid.Bool().Draw(t, "somebody meddles") {
				fakes[0].remove(Nat, chainServices)
			}
			if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
				fakes[0].failWrite = errors.New("no")
			}
			_, err := b.Apply(t.Context(), r, backend.Request{Recheck: fakes[0].legacy}) // that tells of no meddling
			told := map[model.Family]bool{}
			for _, n := range b.Rules() {
				told[n.Family] = true
				table, _ := tableNamed(nfIPv4, n.Table)
				if want := fakes[n.Family].contents.count()[table]; n.Held != want {
					t.Fatalf("%v %s: %d rules are told, and there are %d", n.Family, n.Table, n.Held, want)
				}
			}
			if err == nil && len(told) != 2 {
				t.Fatalf("rules are told of %v alone", told)
			}
			fakes[0].failWrite = nil
		}
	})
}

// What an Apply writes is counted whole, and no Apply's is the next one's.
func TestWrittenRulesAreCounted(t *testing.T) {
	b, _ := newTestBackend(false)
	r := webNodePort(DefaultOptions())
	for i, want := range []struct{ filter, nat int }{
		// KUBE-FORWARD has 3, KUBE-FIREWALL 1, and there are 12 jumps; nat has 3 jumps.
		{16, r.families[model.IPv4].chains.count()[Nat] + 3}, {0, 0},
	} {
		if _, err := b.Apply(t.Context(), r, backend.Request{}); err != nil {
			t.Fatal(err)
		}
		for _, n := range b.Rules() {
			if n.Family != model.IPv4 {
				continue
			}
			if w := map[string]int{"filter": want.filter, "nat": want.nat}[n.Table]; n.Written != w {
				t.Errorf("Apply %d: %d rules of %s written, want %d", i, n.Written, n.Table, w)
			}
			if n.Held == 0 {
				t.Errorf("Apply %d: no rules in %s", i, n.Table)
			}
		}
	}
}
