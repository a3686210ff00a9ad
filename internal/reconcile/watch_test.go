package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRepairsAtOnce(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.put(service("a", 1, 5300))
		w.wait(10 * time.Second)
		clear(w.kernel.rules)
		w.kernel.restored = []string{"chain KUBE-SERVICES"}
		w.meanwhile(func() { w.kernel.watch <- "" })
		w.check(t)
		if diff := cmp.Diff([]float64{0, 10}, w.since(w.kernel.applied)); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(w.log.String(), "chain KUBE-SERVICES") || w.Summary().Restored != 1 {
			t.Errorf("log %q, summary %+v, want what was restored", w.log, w.Summary())
		}
	})
}

// Somebody undoes whatever is repaired. The daemon neither gives up nor spins.
func TestFightDoesNotSpin(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.put(service("a", 1, 5300))
		for range 600 {
			clear(w.kernel.rules)
			w.kernel.restored = []string{"chain KUBE-SERVICES"}
			w.meanwhile(func() { w.kernel.watch <- "" })
			w.wait(100 * time.Millisecond)
		}
		if n := len(w.kernel.applied); n < 18 || n > 26 {
			t.Errorf("%d repairs in a minute, at %v", n, w.since(w.kernel.applied))
		}
		if n := strings.Count(w.log.String(), "keeps changing"); n != 1 {
			t.Errorf("told %d times that somebody keeps changing it, want once", n)
		}
		w.wait(time.Minute)
		w.check(t)
		// A change of the plan does not wait for a truce, and repairs what there is to be repaired.
		clear(w.kernel.rules)
		w.put(service("a", 1, 5301))
		w.check(t)
	})
}

// While Applies fail, only their own back-off counts.
func TestOthersDoNotHastenRetries(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.kernel.fail = func() error { return errRestore }
		w.put(service("a", 1, 5300))
		for range 100 {
			w.meanwhile(func() { w.kernel.watch <- "" })
			w.wait(100 * time.Millisecond)
		}
		if diff := cmp.Diff([]float64{0, 1, 3, 7}, w.since(w.kernel.applied)); diff != "" {
			t.Error(diff)
		}
	})
}

// A watch that breaks is begun again, ever later, and told of once. When it is back, it has the rules looked at.
func TestWatchIsBegunAgain(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.put(service("a", 1, 5300))
		w.wait(time.Second)
		for range 5 {
			w.meanwhile(func() { w.kernel.watch <- "no buffer space available" })
		}
		if n := strings.Count(w.log.String(), "no buffer space"); n != 1 {
			t.Errorf("told %d times, want once; log %s", n, w.log)
		}
		if got := time.Since(w.start); got != 16*time.Second {
			t.Errorf("five failures in %v, want a wait of 1, 2, 4, 8 s after each but the last", got)
		}
		seen := len(w.kernel.applied)
		w.wait(16 * time.Second)
		if len(w.kernel.applied) == seen {
			t.Error("what happened while nobody listened is not looked at")
		}
	})
}
