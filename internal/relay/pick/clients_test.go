package pick

import (
	"net/netip"
	"testing"
	"time"

	"sluice/internal/model"
)

func clientAt(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}) }

// Each connection starts the time anew.
func TestAffinityTimesOutWithTheLastConnection(t *testing.T) {
	w := newWorld(Config{Affinity: 10 * time.Second}, equal(3)...)
	first := w.pick(t, clientAt(1))
	for range 5 {
		w.pick(t, clientAt(2)) // so that it is another's turn
		w.now = w.now.Add(9 * time.Second)
		if addr := w.pick(t, clientAt(1)); addr != first {
			t.Errorf("chosen %s 9 s after the last connection to %s", addr, first)
		}
	}
	w.now = w.now.Add(10 * time.Second)
	if addr := w.pick(t, clientAt(1)); addr == first {
		t.Errorf("chosen %s again after 10 s", addr)
	}
}

func TestClientsMoveFromEndpointsThatFail(t *testing.T) {
	w := newWorld(Config{Affinity: time.Hour}, equal(2)...)
	first := w.pick(t, clientAt(1))
	w.Failed(first)
	second := w.pick(t, clientAt(1))
	if second == first {
		t.Fatalf("chosen %s, which has failed", second)
	}
	w.Worked(first)
	for range 3 {
		if addr := w.pick(t, clientAt(1)); addr != second {
			t.Errorf("chosen %s for a client that has moved to %s", addr, second)
		}
	}
}

func TestClientsMoveFromEndpointsThatLeave(t *testing.T) {
	w := newWorld(Config{Affinity: time.Hour}, equal(2)...)
	if addr := w.pick(t, clientAt(1)); addr != at(0) {
		t.Fatal("not the first turn:", addr)
	}
	w.pick(t, clientAt(2))
	w.pick(t, clientAt(3))
	w.Set(equal(2)[1:], model.BalanceDefault, time.Hour)
	if addr := w.pick(t, clientAt(1)); addr != at(1) {
		t.Errorf("chosen %s, which is not in the list", addr)
	}
	w.Set(equal(2), model.BalanceDefault, time.Hour)
	if addr := w.pick(t, clientAt(1)); addr != at(1) {
		t.Errorf("chosen %s, want %s, where the client has moved", addr, at(1))
	}
	if addr := w.pick(t, clientAt(3)); addr != at(0) {
		t.Errorf("chosen %s, want %s, which came back in time", addr, at(0))
	}
}

func TestTheClientThatWasSilentForLongestIsForgotten(t *testing.T) {
	w := newWorld(Config{Affinity: time.Hour, Clients: 2}, equal(3)...)
	w.pick(t, clientAt(1))
	w.pick(t, clientAt(2))
	w.pick(t, clientAt(1))
	w.pick(t, clientAt(3))
	known := func(i int) bool { _, ok := w.clients.find(clientAt(i), w.now); return ok }
	if !known(1) || known(2) || !known(3) {
		t.Errorf("clients 1, 2, 3 are known: %v %v %v; want the first and the last", known(1), known(2), known(3))
	}
}

func TestTheTableOfClientsShrinks(t *testing.T) {
	w := newWorld(Config{Affinity: time.Second}, equal(3)...)
	for i := range 1000 {
		w.pick(t, clientAt(i))
	}
	w.now = w.now.Add(time.Second)
	for range 500 {
		w.pick(t, anyone)
	}
	if n := len(w.clients.byAddr); n != 1 {
		t.Errorf("%d clients are remembered, want 1", n)
	}
}

func TestWithoutAffinityNobodyIsRemembered(t *testing.T) {
	w := newWorld(Config{Affinity: time.Hour}, equal(2)...)
	w.pick(t, clientAt(1))
	w.Set(equal(2), model.BalanceDefault, 0)
	w.pick(t, clientAt(2))
	w.Set(equal(2), model.BalanceDefault, time.Hour)
	if n := len(w.clients.byAddr); n != 0 {
		t.Errorf("%d clients are remembered, want none", n)
	}
}
