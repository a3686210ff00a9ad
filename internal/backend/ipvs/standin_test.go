package ipvs

import (
	"net/netip"
	"testing"

	"sluice/internal/backend"
)

const standsIn = "local 10.96.0.10 src 192.168.10.11"

// Who speaks from an address when another mode takes over goes on doing so, also when its virtual server is gone, and in
// another process.
func TestStandInStaysForWhoSpeaks(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	w.apply(backend.Request{})
	w.speak[netip.MustParseAddr("10.96.0.10")] = true
	retire := func(want int, lines ...string) {
		t.Helper()
		if left, err := w.backend.Retire(t.Context()); err != nil || left != want {
			t.Errorf("%d left, %v, want %d", left, err, want)
		}
		w.want(lines...)
	}
	retire(1, "-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 0", standsIn)
	retire(1, standsIn)
	w.restart()
	retire(1, standsIn)
	w.speak = nil
	retire(0)
}

// When mode ipvs comes back, the device has its addresses again.
func TestStandInGoesWhenTheAddressIsBack(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	w.apply(backend.Request{})
	w.connect("10.244.1.5:8080", 1)
	if _, err := w.backend.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.speak[netip.MustParseAddr("10.96.0.10")] = true
	w.restart()
	w.apply(backend.Request{})
	w.want(w.rules.wanted()...)
	if w.lost > 0 {
		t.Errorf("%d connections are lost", w.lost)
	}
}

// Where no endpoint tells what the node could speak from, an address stays as long as its virtual server does.
func TestNoStandInWithoutASource(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	w.apply(backend.Request{})
	w.unreachable = map[netip.Addr]bool{netip.MustParseAddr("10.244.1.5"): true}
	w.connect("10.244.1.5:8080", 1)
	if _, err := w.backend.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want("-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 0", "10.96.0.10/32")
}

// Cleanup ends what there is, whoever speaks.
func TestCleanupRemovesStandIns(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	w.apply(backend.Request{})
	w.speak[netip.MustParseAddr("10.96.0.10")] = true
	for range 2 {
		if _, err := w.backend.Retire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.want(standsIn)
	w.restart()
	must(t, w.backend.Cleanup(t.Context()))
	w.want()
}
