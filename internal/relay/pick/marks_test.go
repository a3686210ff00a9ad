package pick

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestMarksDoubleUntilTheEndpointWorks(t *testing.T) {
	w := newWorld(Config{}, equal(2)...)
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		want *= time.Second
		w.Failed(at(0))
		w.Failed(at(0)) // a dial that was on its way
		w.now = w.now.Add(want - time.Nanosecond)
		if got := w.picks(t, 3); slices.Contains(got, at(0)) {
			t.Errorf("failure %d: chosen before %s were over", i+1, want)
		}
		w.now = w.now.Add(time.Nanosecond)
		if got := w.picks(t, 3); !slices.Contains(got, at(0)) {
			t.Errorf("failure %d: not chosen after %s", i+1, want)
		}
	}
	w.Worked(at(0))
	w.Failed(at(0))
	w.now = w.now.Add(firstMark)
	if got := w.picks(t, 3); !slices.Contains(got, at(0)) {
		t.Error("not chosen a second after the first failure since it worked")
	}
}

func TestSuccessEndsAMark(t *testing.T) {
	for _, b := range balancings() {
		w := newWorld(Config{Balancing: b}, equal(2)...)
		w.Failed(at(0))
		w.Worked(at(0))
		if got := w.picks(t, 50); !slices.Contains(got, at(0)) {
			t.Errorf("%v: not chosen though it works again", b)
		}
	}
}

// When all have failed, they are tried all the same: the one whose last try is longest ago first.
func TestAllMarked(t *testing.T) {
	w := newWorld(Config{}, equal(3)...)
	for _, i := range []int{1, 2, 0} {
		w.Failed(at(i))
	}
	want := []netip.AddrPort{at(1), at(2), at(0), at(1)}
	if got := w.picks(t, 4); !slices.Equal(got, want) {
		t.Errorf("chosen %v, want %v", got, want)
	}
	if addr := w.pick(t, anyone, at(2)); addr != at(0) {
		t.Errorf("chosen %s, want %s", addr, at(0))
	}
}

func TestMarksStayWithTheEndpoint(t *testing.T) {
	w := newWorld(Config{}, equal(3)...)
	w.Failed(at(0))
	w.Set(equal(2), 0, 0)
	if got := w.picks(t, 4); slices.Contains(got, at(0)) {
		t.Error("a change of the list has ended a mark")
	}
	w.Set(equal(2)[1:], 0, 0)
	w.Set(equal(2), 0, 0)
	if got := w.picks(t, 4); !slices.Contains(got, at(0)) {
		t.Error("an endpoint that left and came back has its mark still")
	}
}
