package iptables

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
)

// TestDiffLaws: what diff finds makes any kernel as wanted, and then finds nothing more.
func TestDiffLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, host := gen.Config(t), gen.Host(t)
		p := plan.NewPlanner(cfg)
		p.SetHost(host)
		p.Update(model.Delta(*gen.Snapshot(t)))
		r := Compile(p.Plan(), DefaultOptions())
		have := [2]contents{emptyKernel(), newContents()} // the chains of the kernel may be there or not
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			for f := range have {
				vandalize(t, &have[f])
				foreign := foreignLines(have[f])
				have[f] = apply(t, r.families[f].desired, have[f])
				if diff := cmp.Diff(foreign, foreignLines(have[f])); diff != "" {
					t.Fatalf("foreign rules changed:\n%s", diff)
				}
			}
			r.Update(p.Plan(), p.Update(gen.Delta(t)))
		}
	})
}

func apply(t *rapid.T, want desired, have contents) contents {
	d := diff(want, have)
	now, err := restore(have, string(d.text()))
	if err != nil {
		t.Fatalf("%v\n%s", err, d.text())
	}
	shadow := have.clone()
	if shadow.advance(d); !cmp.Equal(shadow, now) {
		t.Fatalf("the shadow differs after:\n%s\n%s", d.text(), cmp.Diff(now, shadow))
	}
	if again := diff(want, now); again.size() != 0 || len(again.text()) != 0 {
		t.Fatalf("not done after:\n%s\nstill:\n%s", d.text(), again.text())
	}
	for _, table := range tables {
		for name, text := range want.chains[table] {
			if now[table][name] != text {
				t.Fatalf("%s %s is\n%s\nwant\n%s", table, name, now[table][name], text)
			}
		}
	}
	return now
}

// vandalize does what others do to the tables.
func vandalize(t *rapid.T, have *contents) {
	for range rapid.IntRange(0, 3).Draw(t, "deeds") {
		table := rapid.SampledFrom(tables[:]).Draw(t, "table")
		chains := have[table]
		if len(chains) == 0 {
			continue
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(chains))).Draw(t, "chain")
		all := lines(chains[name])
		switch deed := rapid.IntRange(0, 5).Draw(t, "deed"); {
		case deed == 0 && len(all) > 0:
			at := rapid.IntRange(0, len(all)-1).Draw(t, "deleted")
			chains[name] = join(slices.Delete(all, at, at+1))
		case deed == 1 && len(all) > 1:
			slices.Reverse(all)
			chains[name] = join(all)
		case deed == 2 && len(all) > 0:
			chains[name] = join(append(all, all[0]))
		case deed == 3:
			at := rapid.IntRange(0, len(all)).Draw(t, "place")
			chains[name] = join(slices.Insert(all, at, "-A "+name+" -s 9.9.9.9/32 -j ACCEPT"))
		case deed == 4:
			chains["KUBE-SVC-ABANDONED"], chains["KUBE-SEP-ABANDONED"] = "-A KUBE-SVC-ABANDONED -j KUBE-SEP-ABANDONED\n", ""
		case deed == 5 && table == Nat:
			chains["KUBE-SVC-HELD"], chains["FOREIGN"] = "-A KUBE-SVC-HELD -j ACCEPT\n", "-A FOREIGN -j KUBE-SVC-HELD\n"
		}
	}
}

// foreignLines are all rules that are not ours, chain by chain.
func foreignLines(have contents) (all []string) {
	for _, table := range tables {
		for _, name := range slices.Sorted(maps.Keys(have[table])) {
			for _, l := range lines(have[table][name]) {
				ours := own(table, name) || name == chainFirewall || slices.ContainsFunc(jumpsFrom(table, name), func(j jump) bool { return j.is(l) }) || strings.HasSuffix(l, "-j "+chainFirewall)
				if !ours {
					all = append(all, table.String()+" "+l)
				}
			}
		}
	}
	return all
}
