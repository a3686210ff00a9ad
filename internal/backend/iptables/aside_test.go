package iptables

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
)

// TestInKernelFindsAllOfAPort: what is found of each port by what the kernel holds is what was compiled.
func TestInKernelFindsAllOfAPort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Compile(plan.Build(gen.Config(t), gen.Host(t), gen.Snapshot(t)), DefaultOptions())
		for _, f := range r.families {
			ids := aside{}
			for _, g := range f.fragments {
				ids[g.id] = true
				got := inKernel(g.id, f.chains)
				slices.Sort(got.chains)
				if diff := cmp.Diff(slices.Sorted(slices.Values(g.chains)), got.chains); diff != "" {
					t.Fatalf("%v: chains (-compiled +found):\n%s", g.id, diff)
				}
				for s := range sections {
					var want string
					for _, part := range partsOf(s).sections {
						want += g.lines[part]
					}
					if last := partsOf(s).sections; s == last[len(last)-1] && got.lines[s] != want {
						t.Fatalf("%v: lines of %s\n%s\nwant\n%s", g.id, chainOf[s], got.lines[s], want)
					}
				}
			}
			if diff := cmp.Diff(f.chains, f.setAside(ids, f.chains).chains); len(ids) == 1 && diff != "" {
				t.Fatalf("setting the only port aside changes:\n%s", diff)
			}
		}
	})
}

// TestRefusedPortsHoldUpNobody: whatever ports a kernel refuses, all others are written, and what it has of the refused
// ones stays; and once it takes them, they are written too.
func TestRefusedPortsHoldUpNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan.NewPlanner(gen.Config(t))
		p.SetHost(gen.Host(t))
		p.Update(model.Delta(*gen.Snapshot(t)))
		b, fakes := newTestBackend(rapid.Bool().Draw(t, "legacy"))
		r := b.Compile(p.Plan()).(*Ruleset)
		var hold map[plan.PortID]bool
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			r.Update(p.Plan(), p.Update(gen.Delta(t)))
			for f, fake := range fakes {
				fake.refuses = drawRefused(t, r.families[f])
			}
			result, err := b.Apply(context.Background(), r, backend.Request{Hold: hold, Recheck: rapid.Bool().Draw(t, "recheck")})
			if err != nil {
				t.Fatal(err)
			}
			for id, why := range result.Refused {
				if at, ok := errors.AsType[*LineError](why); hold[id] || !ok || *at.Port != id {
					t.Fatalf("refused %v (held: %t): %v", id, hold[id], why)
				}
			}
			next := map[plan.PortID]bool{}
			for f, fake := range fakes {
				aside := map[plan.PortID]bool{}
				for _, g := range r.families[f].fragments {
					aside[g.id] = hold[g.id] || result.Refused[g.id] != nil
					if aside[g.id] && rapid.Bool().Draw(t, "held") {
						next[g.id] = true
					}
				}
				checkOthers(t, r.families[f], aside, fake)
			}
			hold = next
		}
		for _, fake := range fakes {
			fake.refuses = nil
		}
		if _, err := b.Apply(context.Background(), r, backend.Request{}); err != nil {
			t.Fatal(err)
		}
		for f, fake := range fakes {
			if d := diff(r.families[f].desired, fake.contents); d.size() > 0 {
				t.Fatalf("still to do:\n%s", d.text())
			}
		}
	})
}

// drawRefused picks lines that belong to one port alone.
func drawRefused(t *rapid.T, f *family) (parts []string) {
	for _, g := range f.fragments {
		if rapid.IntRange(0, 3).Draw(t, "refused") != 0 {
			continue
		}
		var own []string
		for _, name := range g.chains {
			own = append(own, lines(f.chains[Nat][name])...)
		}
		for _, text := range g.lines {
			own = append(own, lines(text)...)
		}
		if len(own) > 0 {
			parts = append(parts, rapid.SampledFrom(own).Draw(t, "line"))
		}
	}
	return parts
}

// checkOthers compares all but the ports set aside with what the kernel has.
func checkOthers(t *rapid.T, f *family, aside map[plan.PortID]bool, fake *fakeTables) {
	for _, g := range f.fragments {
		if aside[g.id] {
			continue
		}
		got := inKernel(g.id, fake.contents)
		for _, name := range g.chains {
			if !sameText(f.chains[Nat][name], fake.contents[Nat][name]) {
				t.Fatalf("%v: %s holds\n%s\nwant\n%s", g.id, name, fake.contents[Nat][name], f.chains[Nat][name])
			}
		}
		for s := range sections {
			for _, l := range lines(g.lines[s]) {
				parts := partsOf(s).sections
				if !slices.Contains(lines(got.lines[parts[len(parts)-1]]), l) {
					t.Fatalf("%v: %s lacks\n%s", g.id, chainOf[s], l)
				}
			}
		}
	}
}
