package nftables

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
)

// Whichever bit masquerades, marks do not have it, are told from one another and from others, and are never small.
func TestMarks(t *testing.T) {
	for bit := range 32 {
		m := marks{numbers: numbers{max: backend.MaxMark}, masquerade: 1 << bit}
		seen := map[uint32]bool{}
		for range backend.MaxMark {
			mark, err := m.take()
			if err != nil {
				t.Fatal(err)
			}
			if mark&m.masquerade != 0 || mark <= backend.MaxMark || mark&m.others() != m.of(0)&m.others() || seen[mark] {
				t.Fatalf("bit %d: mark %#x", bit, mark)
			}
			seen[mark] = true
		}
		if _, err := m.take(); !errors.Is(err, errNoMark) {
			t.Errorf("bit %d: a mark too many: %v", bit, err)
		}
		for _, foreign := range []uint32{0, 1, m.masquerade, m.of(0), m.of(1) | m.masquerade, m.of(1) | 1<<31 | 1<<30} {
			if m.number(foreign) != 0 || m.reserve(foreign) {
				t.Errorf("bit %d: %#x is taken for a mark", bit, foreign)
			}
		}
		for mark := range seen {
			m.give(mark)
			if !m.reserve(mark) {
				t.Fatalf("bit %d: %#x was given back and cannot be had again", bit, mark)
			}
		}
	}
}

// marksOf are those of all Service ports.
func marksOf(r *Ruleset) map[plan.PortID]uint32 {
	all := map[plan.PortID]uint32{}
	for id := range r.ports {
		if mark, ok := r.Mark(id); ok {
			all[id] = mark
		}
	}
	return all
}

// Each Service port whose outside clients have endpoints of their own has a mark that nobody else has, and keeps it while
// it needs one. A new process has the same, by the frontends that lead there.
func TestMarksStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t)
		s.opts = ipvsOptions()
		s.rules = Compile(s.Plan(), s.opts)
		had := map[plan.PortID]uint32{}
		for range rapid.IntRange(1, 10).Draw(t, "changes") {
			s.change(t)
			now, seen := marksOf(s.rules), map[uint32]bool{}
			for id, port := range s.Plan().Ports {
				mark, ok := now[id]
				if need := needsMark(port, plan.ListLocal); ok != need || seen[mark] && ok || had[id] != 0 && ok && mark != had[id] {
					t.Fatalf("%s has mark %#x, had %#x, needs one: %v", id, mark, had[id], need)
				}
				seen[mark] = true
			}
			had = now
		}
		k := load(t, s.rules)
		again := Compile(s.Plan(), s.opts)
		again.adopt(k.read())
		if got := marksOf(again); !maps.Equal(got, had) {
			t.Fatalf("a new process has %v, the old one %v", got, had)
		}
		was := maps.Clone(s.Plan().Ports)
		s.Update(gen.Delta(t))
		again = Compile(s.Plan(), s.opts)
		again.adopt(k.read())
		for id, mark := range marksOf(again) {
			if had[id] != 0 && had[id] != mark && slices.Equal(was[id].Frontends, s.Plan().Ports[id].Frontends) {
				t.Fatalf("%s has mark %#x, had %#x", id, mark, had[id])
			}
		}
	})
}

// local has policy Local, for clients outside to be sent elsewhere than pods.
func local(s *model.Service) {
	s.Type, s.ExternalPolicy, s.LoadBalancerIPs = model.LoadBalancer, model.PolicyLocal, addrsOf("192.0.2.1")
}

// Who adopts knows the marks before anything is written, and whatever becomes of the table they stay.
func TestAdoptTellsMarks(t *testing.T) {
	b := inKernelWith(t, ipvsOptions())
	w := newRigWith(t, ipvsOptions(), serviceWith(2, addrsOf("10.244.1.5"), local))
	if err := b.Adopt(t.Context(), w.rules); err != nil {
		t.Fatal(err)
	}
	apply(t, b, w.rules)
	first, _ := w.rules.Mark(portID(2))
	w.change(serviceWith(1, addrsOf("10.244.1.6"), func(s *model.Service) { local(s); s.LoadBalancerIPs = addrsOf("192.0.2.2") }))
	apply(t, b, w.rules)
	want := marksOf(w.rules)
	if len(want) != 2 || want[portID(2)] != first {
		t.Fatalf("marks %v", want)
	}

	again, fresh := w.restarted(), New(ipvsOptions(), Deps{})
	t.Cleanup(func() { _ = fresh.Close() })
	if maps.Equal(marksOf(again.rules), want) {
		t.Fatal("the marks of a new process are the same without a look at the kernel, which makes this no test")
	}
	if err := fresh.Adopt(t.Context(), again.rules); err != nil {
		t.Fatal(err)
	}
	nftProgram(t, "delete table inet sluice", "-f", "-")
	if got := marksOf(again.rules); !maps.Equal(got, want) {
		t.Errorf("adopted: %v, want %v", got, want)
	}
	for range 2 {
		apply(t, fresh, again.rules)
		if got := marksOf(again.rules); !maps.Equal(got, want) {
			t.Errorf("applied: %v, want %v", got, want)
		}
		if err := fresh.Adopt(t.Context(), again.rules); err != nil {
			t.Fatal(err)
		}
	}
	restarts(t, again)
}
