package ipsets

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/backend"
	"sluice/internal/iptables/sets"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/testkit/sample"
)

// TestUpdateEqualsCompile changes a plan at random and compares with compiling it anew, after each change, but for the
// numbers of marks. What is told of changes leads from the entries before to those after.
func TestUpdateEqualsCompile(t *testing.T) {
	marks := regexp.MustCompile(`skbmark \w+`)
	render := func(t rapid.TB, r *Ruleset) string { return marks.ReplaceAllString(text(t, r), "skbmark N") }
	rapid.Check(t, func(t *rapid.T) {
		p := plan.NewPlanner(gen.Config(t))
		p.SetHost(gen.Host(t))
		p.Update(model.Delta(*gen.Snapshot(t)))
		r := compiled(p.Plan())
		have := entriesOf(r)
		for range rapid.IntRange(1, 10).Draw(t, "changes") {
			before := [2]int{r.families[0].position(), r.families[1].position()}
			if rapid.IntRange(0, 3).Draw(t, "what changes") == 0 {
				r.Update(p.Plan(), p.SetHost(gen.Host(t)))
			} else {
				r.Update(p.Plan(), p.Update(gen.Delta(t)))
			}
			if diff := cmp.Diff(render(t, compiled(p.Plan())), render(t, r)); diff != "" {
				t.Fatalf("-compiled +updated:\n%s", diff)
			}
			follow(t, r, have, before)
			if diff := cmp.Diff(entriesOf(r), have); diff != "" {
				t.Fatalf("-updated +followed:\n%s", diff)
			}
		}
	})
}

// entriesOf are all entries with their marks, by set and text.
func entriesOf(r *Ruleset) map[string]uint32 {
	all := map[string]uint32{}
	for _, f := range r.families {
		for k := range kinds {
			for e, u := range f.entries[k] {
				all[nameOf(f.family, k, e)] = u.mark
			}
		}
	}
	return all
}

func nameOf(f model.Family, k kind, e sets.Entry) string { return setName(k, f) + " " + e.String() }

func follow(t *rapid.T, r *Ruleset, have map[string]uint32, before [2]int) {
	for i, f := range r.families {
		places, ok := f.since(before[i])
		if !ok {
			t.Fatal("few changes are forgotten")
		}
		for _, p := range places {
			if u, is := f.entries[p.kind][p.Entry]; is {
				have[nameOf(f.family, p.kind, p.Entry)] = u.mark
			} else {
				delete(have, nameOf(f.family, p.kind, p.Entry))
			}
		}
	}
}

// The log of changes is short, and tells when it is too short.
func TestForgottenChanges(t *testing.T) {
	f := &family{}
	for range maxLog {
		f.note(place{})
	}
	if places, ok := f.since(0); !ok || len(places) != maxLog {
		t.Errorf("%d places, %v", len(places), ok)
	}
	f.note(place{})
	f.note(place{})
	if _, ok := f.since(0); ok {
		t.Error("what is forgotten is told")
	}
	if places, ok := f.since(maxLog + 1); !ok || len(places) != 1 {
		t.Errorf("%d places, %v", len(places), ok)
	}
}

func TestNamesFitAndAreApart(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range model.Families {
		for k := range kinds {
			if forms[k].name == "" {
				t.Fatalf("kind %d has no form", k)
			}
			name := setName(k, f)
			if seen[name] || len(name) > maxName {
				t.Errorf("%s: twice, or too long", name)
			}
			seen[name] = true
			if gotKind, gotFamily, ok := kindOf(name); !ok || gotKind != k || gotFamily != f {
				t.Errorf("%s: kind %d of %s, %v", name, gotKind, gotFamily, ok)
			}
		}
	}
	for _, name := range []string{"KUBE-6-LOAD-BALANCER-SOURCE-CID", "KUBE-6-NODE-PORT-LOCAL-SCTP-HAS", "KUBE-NODE-PORT-SCTP-HASH"} {
		if !seen[name] {
			t.Errorf("no %s", name)
		}
	}
}

// Marks are apart, never have the bit that masquerades, and stay as long as they are needed.
func TestMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bit := rapid.IntRange(0, 31).Draw(t, "bit")
		m := newMarks(Options{MasqueradeBit: bit})
		held := map[plan.PortID]uint32{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := portNumber(rapid.IntRange(0, 20).Draw(t, "port"))
			if rapid.Bool().Draw(t, "drop") {
				m.drop(id)
				delete(held, id)
				continue
			}
			m.give(id)
			if was, ok := held[id]; ok && was != m.of[id] {
				t.Fatalf("mark %#x was %#x", m.of[id], was)
			}
			held[id] = m.of[id]
		}
		seen := map[uint32]bool{}
		for _, mark := range held {
			if mark == 0 || mark>>bit&1 == 1 || seen[mark] || m.mark(m.number(mark)) != mark {
				t.Fatalf("marks %#x", held)
			}
			seen[mark] = true
		}
	})
}

func portNumber(i int) plan.PortID {
	return plan.PortID{Service: model.Name{Namespace: "default", Name: fmt.Sprint("web-", i)}, Protocol: model.TCP}
}

// Who gets no mark is dropped: the virtual server of the address would lead to other nodes.
func TestNoMarksLeft(t *testing.T) {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	external(s)
	s.ExternalPolicy = model.PolicyLocal
	p := sample.Plan(plan.Config{}, s, sl)
	f := &family{family: model.IPv4, opts: DefaultOptions(), members: map[plan.PortID][]member{}, marks: newMarks(DefaultOptions())}
	for i := range int(backend.MaxMark) {
		f.marks.give(portNumber(i))
	}
	f.rebuild(p)
	kindsOf := func() (ks []kind) {
		for k := range kinds {
			if len(f.entries[k]) > 0 && k >= firstOfOurs {
				ks = append(ks, k)
			}
		}
		return ks
	}
	if got, want := kindsOf(), []kind{outsideDropAddress, outsideDropNodePort}; !slices.Equal(got, want) {
		t.Errorf("sets of kinds %v, want %v", got, want)
	}
	f.marks.drop(portNumber(7))
	f.rebuild(p)
	if got, want := kindsOf(), []kind{markAddress, markNodePort}; !slices.Equal(got, want) {
		t.Errorf("sets of kinds %v, want %v", got, want)
	}
}
