package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// A port that the kernel refuses waits by itself: neither others nor the health of the node suffer.
func TestRefusedPortHoldsUpNobody(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		bad := idOf("bad")
		var refused []plan.PortID
		w.Refused = func(id plan.PortID, _ error) { refused = append(refused, id) }
		w.kernel.refuse[bad] = true
		w.put(service("bad", 1, 5300))
		w.put(service("good", 2, 5300))
		w.wait(20 * time.Second)
		w.put(service("good", 2, 5301))
		if w.kernel.rules[idOf("good")] != ruleOf(w.Planner.Plan().Ports[idOf("good")]) {
			t.Error("the other port is not as it should be")
		}
		w.wait(75 * time.Second)
		// At 0 s both, then the refused one alone, ever later, and the other's change, with the former held.
		if diff := cmp.Diff([]float64{0, 0, 1, 3, 7, 15, 20, 30, 31, 60, 61, 90, 91}, w.since(w.kernel.applied)); diff != "" {
			t.Error(diff)
		}
		want := Status{State: Failed, Since: w.start, Error: "default/bad: operation not supported"}
		if diff := cmp.Diff(want, w.Status()[bad]); diff != "" {
			t.Error(diff)
		}
		if !w.Healthy() {
			t.Error("one port is refused: want healthy")
		}
		if n := strings.Count(w.log.String(), "a Service port is refused"); n != 1 {
			t.Errorf("told %d times, want once; log %s", n, w.log)
		}
		if diff := cmp.Diff([]plan.PortID{bad}, refused); diff != "" {
			t.Error(diff)
		}
		clear(w.kernel.refuse)
		w.wait(time.Minute)
		w.check(t)
		if !strings.Contains(w.log.String(), "a Service port that was refused is taken") {
			t.Errorf("log %s, want the end of it told", w.log)
		}
	})
}

// One that is planned anew is tried at once.
func TestRefusedPortIsTriedWhenItChanges(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.kernel.refuse[idOf("a")] = true
		w.put(service("a", 1, 5300))
		w.wait(50 * time.Second)
		w.put(service("a", 1, 5301))
		w.wait(100 * time.Millisecond)
		if got := w.since(w.kernel.applied); got[len(got)-1] != 50 {
			t.Errorf("tried at %v s, want to see it tried at 50 s", got)
		}
		if n := strings.Count(w.log.String(), "a Service port is refused"); n != 1 {
			t.Errorf("told %d times, want once", n)
		}
		clear(w.kernel.refuse)
		w.put(service("a", 1, 5302))
		w.check(t)
	})
}

// A port whose removal is refused is told until it has gone.
func TestRefusedRemoval(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.put(service("a", 1, 5300))
		w.kernel.refuse[idOf("a")] = true
		w.wait(5 * time.Second)
		w.remove("a")
		w.wait(10 * time.Minute)
		want := map[plan.PortID]Status{idOf("a"): {Failed, w.start.Add(5 * time.Second), "default/a: operation not supported"}}
		if diff := cmp.Diff(want, w.Status()); diff != "" {
			t.Error(diff)
		}
		clear(w.kernel.refuse)
		w.wait(time.Minute)
		if len(w.Status()) != 0 || len(w.kernel.rules) != 0 {
			t.Errorf("left: status %v, rules %v", w.Status(), w.kernel.rules)
		}
	})
}

// Somebody takes away what the kernel refuses to take again.
func TestRefusedWhatWasDone(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.put(service("a", 1, 5300))
		w.kernel.refuse[idOf("a")] = true
		clear(w.kernel.rules)
		w.wait(31 * time.Second)
		if got := w.Status()[idOf("a")]; got.State != Failed || !got.Since.Equal(w.start.Add(30*time.Second)) {
			t.Errorf("status %+v, want an error since the reading", got)
		}
		want := map[State]int{Done: 0, Failed: 1}
		if diff := cmp.Diff(want, w.Summary().Ports); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRefusals(t *testing.T) {
	now := time.Unix(0, 0)
	four, six := idOf("a"), idOf("b")
	six.Family = model.IPv6
	r := newRefusals(30 * time.Second)
	settle := func(failed bool, refused map[plan.PortID]error) (fresh []plan.PortID, taken []plan.Change) {
		return r.settle(outcome{
			Result: backend.Result{Refused: refused}, held: r.hold(now), failed: [2]bool{model.IPv6: failed}, end: now,
		})
	}
	old := &plan.Port{ID: four}
	r.change(plan.Change{ID: four, Old: old, New: &plan.Port{ID: four}}, now)
	if fresh, taken := settle(false, map[plan.PortID]error{four: errRefused, six: errRefused}); len(fresh) != 2 || taken != nil {
		t.Errorf("refused for the first time %v, taken %v", fresh, taken)
	}
	if diff := cmp.Diff(map[plan.PortID]bool{four: true, six: true}, r.hold(now)); diff != "" {
		t.Error(diff)
	}
	// IPv6 fails as a whole: its port stays, and waits for that to end.
	now = r.next()
	if fresh, taken := settle(true, nil); fresh != nil || len(taken) != 1 || taken[0] != (plan.Change{ID: four, Old: old}) {
		t.Errorf("refused for the first time %v, taken %v; want IPv4's taken", fresh, taken)
	}
	now = now.Add(time.Hour)
	if held := r.hold(now); !held[six] || !r.next().IsZero() {
		t.Errorf("held %v, next %v: want IPv6's held as long as the family fails", held, r.next())
	}
	settle(false, nil)
	if held := r.hold(now); held != nil || r.next().After(now) {
		t.Errorf("held %v, next %v: want IPv6's tried", held, r.next())
	}
	if _, taken := settle(false, nil); len(taken) != 1 || !r.next().IsZero() {
		t.Errorf("taken %v, next %v", taken, r.next())
	}
}
