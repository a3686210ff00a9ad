package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// notes is an Observer that writes down what it is told.
type notes struct {
	services, slices int
	applied          []Applied
	sweeps           int
}

func (n *notes) Absorbed(services, slices int) { n.services += services; n.slices += slices }
func (n *notes) Applied(a Applied)             { n.applied = append(n.applied, a) }

func (n *notes) Swept(time.Duration, [2]int, error) { n.sweeps++ }

func (n *notes) programmed() (all []Programmed) {
	for _, a := range n.applied {
		all = append(all, a.Programmed...)
	}
	return all
}

// trigger changes a Service and says since when that has been due.
func (w *world) trigger(endpoint uint16, triggers ...Trigger) {
	s, slice := service("a", 1, endpoint)
	next := w.snap.Clone()
	next.Services[s.Name], next.Slices[s.Name] = s, slice
	w.tell(Event{Input: &Input{Delta: model.Diff(w.snap, next), Triggers: triggers}})
	w.snap = next
}

func TestTellsAnObserver(t *testing.T) {
	run(t, func(w *world) {
		t, n := w.t, &notes{}
		w.Observer = n
		w.put(service("a", 1, 5300))
		w.wait(40 * time.Second)
		if n.services != 1 || n.slices != 1 || n.sweeps == 0 {
			t.Errorf("told of %d Services, %d slices and %d sweeps", n.services, n.slices, n.sweeps)
		}
		if len(n.applied) != 2 || n.applied[0].Written != 1 || !n.applied[1].Full {
			t.Errorf("told of %+v, want the write and the look after a period", n.applied)
		}
	})
}

// A trigger is measured when the kernel has its family's rules, however often that failed before.
func TestTriggersWaitForTheirFamily(t *testing.T) {
	run(t, func(w *world) {
		t, n := w.t, &notes{}
		w.Observer = n
		w.kernel.fail = func() error { return &backend.FamilyError{Family: model.IPv6, Err: errRestore} }
		now := time.Now()
		w.wait(2 * time.Second)
		w.trigger(5300,
			Trigger{Family: model.IPv4, At: now.Add(time.Second)}, Trigger{Family: model.IPv6, At: now.Add(time.Second)},
			Trigger{Family: model.IPv4, At: now.Add(-time.Hour)}) // before this process
		if diff := cmp.Diff([]Programmed{{model.IPv4, time.Second}}, n.programmed()); diff != "" {
			t.Error(diff)
		}
		w.kernel.fail = nil
		w.wait(time.Minute)
		if diff := cmp.Diff([]Programmed{{model.IPv4, time.Second}, {model.IPv6, 2 * time.Second}}, n.programmed()); diff != "" {
			t.Error(diff)
		}
	})
}

// What the kernel refuses is not programmed until it takes it, which is measured from the first trigger.
func TestTriggersWaitForRefusedPorts(t *testing.T) {
	run(t, func(w *world) {
		t, n := w.t, &notes{}
		w.Observer = n
		id := idOf("a")
		w.kernel.refuse[id] = true
		w.wait(time.Second)
		trigger := Trigger{Service: id.Service, Family: id.Family, At: time.Now()}
		w.trigger(5300, trigger)
		w.wait(500 * time.Millisecond)
		later := trigger
		later.At = time.Now()
		other := Trigger{Service: id.Service, Family: 1 - id.Family, At: time.Now()}
		w.trigger(5301, later, other)
		w.wait(100 * time.Millisecond)
		if diff := cmp.Diff([]Programmed{{Family: other.Family}}, n.programmed()); diff != "" {
			t.Error(diff)
		}
		clear(w.kernel.refuse)
		w.wait(time.Minute)
		// The change half a second later was tried at once, and the next try is a second after that.
		want := []Programmed{{Family: other.Family}, {Family: id.Family, Took: 1500 * time.Millisecond}}
		if diff := cmp.Diff(want, n.programmed()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTriggersAreBounded(t *testing.T) {
	var ts triggers
	at := []Trigger{{At: time.Unix(1, 0)}}
	for range maxTriggers + 5 {
		ts.add(at)
	}
	if len(ts.open) != maxTriggers {
		t.Errorf("%d are kept", len(ts.open))
	}
	if done := ts.settle(time.Unix(2, 0), [2]bool{}, nil); len(done) != maxTriggers || ts.open != nil {
		t.Errorf("%d are settled, %d left", len(done), len(ts.open))
	}
}

// A family is unhealthy once something of it has been waiting for two periods, and well as soon as it is written.
func TestHealthIsByFamily(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.kernel.fail = func() error { return &backend.FamilyError{Family: model.IPv6, Err: errRestore} }
		w.wait(time.Second)
		w.put(service("a", 1, 5300)) // of IPv4 alone
		queued := time.Now()         // IPv6 has failed
		w.wait(59 * time.Second)
		if !w.Healthy() {
			t.Error("unhealthy before two periods are over")
		}
		w.wait(2 * time.Second)
		h := w.Health().Family
		if !h[0].Healthy || h[1].Healthy || !h[0].Queued.IsZero() || !h[1].Queued.Equal(queued) || !h[1].Updated.IsZero() {
			t.Errorf("health %+v", h)
		}
		if !h[0].Asked.Equal(queued) || !h[1].Asked.IsZero() {
			t.Errorf("asked at %v and %v, want IPv4 alone at %v", h[0].Asked, h[1].Asked, queued)
		}
		w.kernel.fail = nil
		w.wait(time.Minute)
		if h := w.Health().Family[1]; !h.Healthy || h.Updated.IsZero() || !h.Queued.IsZero() {
			t.Errorf("health %+v after the kernel took it", h)
		}
	})
}

func TestPendingUntilTheKernelFollows(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		want := func(services, slices int) {
			t.Helper()
			if gotServices, gotSlices := w.Pending(); gotServices != services || gotSlices != slices {
				t.Errorf("%d Services and %d slices are pending, want %d and %d", gotServices, gotSlices, services, slices)
			}
		}
		w.kernel.fail = func() error { return errRestore }
		w.put(service("a", 1, 5300))
		want(1, 1)
		w.put(service("a", 1, 5301))
		want(1, 2)
		w.kernel.fail = nil
		w.wait(time.Minute)
		want(0, 0)
		_, stray := service("nobody's", 9, 5300)
		next := w.snap.Clone()
		next.Slices[stray.Name] = stray
		w.send(next)
		want(0, 0) // nothing is to be written for it
	})
}

func TestConfigurationChangesLive(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.put(service("a", 1, 5300))
		w.tell(Event{Config: &Live{Plan: plan.Config{MasqueradeAll: true}, SyncPeriod: 5 * time.Second, MinSyncPeriod: time.Second}})
		if !w.Planner.Plan().Node.MasqueradeAll {
			t.Error("the plan does not follow")
		}
		before := len(w.kernel.rechecks)
		w.wait(11 * time.Second)
		if n := len(w.kernel.rechecks) - before; n != 2 {
			t.Errorf("the kernel was read back %d times in 11 s, want 2", n)
		}
		w.kernel.fail = func() error { return errRestore }
		w.wait(16 * time.Second)
		if w.Healthy() {
			t.Error("healthy after more than two of the new periods")
		}
	})
}
