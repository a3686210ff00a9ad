package nftables

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/plan"
)

func drawSlots(t *rapid.T, label string) []netip.AddrPort {
	octets := rapid.SliceOfN(rapid.ByteRange(0, 9), 0, 12).Draw(t, label)
	slots := make([]netip.AddrPort, len(octets))
	for i, o := range octets {
		if o > 0 { // else an empty slot, as a table read from a kernel may have
			slots[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, o}), 80)
		}
	}
	return slots
}

// TestPlaceSlots: all that is wanted has a place, as often as wanted, and no placing changes fewer slots.
func TestPlaceSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := drawSlots(t, "old")
		want := slices.DeleteFunc(drawSlots(t, "want"), func(a netip.AddrPort) bool { return !a.IsValid() })
		endpoints := make([]plan.Endpoint, len(want))
		for i, a := range want {
			endpoints[i] = plan.Endpoint{AddrPort: a}
		}
		was := slices.Clone(old)
		got := placeSlots(old, endpoints)
		if !slices.Equal(was, old) {
			t.Fatal("the old slots changed")
		}
		if !slices.Equal(counted(got), counted(want)) {
			t.Fatalf("%v, want all of %v", got, want)
		}
		if changed, least := changes(old, got), leastChanges(old, want); changed != least {
			t.Fatalf("%v becomes %v: %d slots change, %d would do", old, got, changed, least)
		}
	})
}

func counted(slots []netip.AddrPort) []netip.AddrPort {
	return slices.SortedFunc(slices.Values(slots), netip.AddrPort.Compare)
}

// changes counts the slots up to the end of got that differ.
func changes(old, got []netip.AddrPort) (n int) {
	for i, a := range got {
		if i >= len(old) || old[i] != a {
			n++
		}
	}
	return n
}

// leastChanges is the number of slots less those that can stay: as many of each endpoint as are both had and wanted.
func leastChanges(old, want []netip.AddrPort) int {
	missing := map[netip.AddrPort]int{}
	for _, a := range want {
		missing[a]++
	}
	stay := 0
	for _, a := range old[:min(len(old), len(want))] {
		if missing[a] > 0 {
			missing[a]--
			stay++
		}
	}
	return len(want) - stay
}

func TestPlaceSlotsKeepsTheSlice(t *testing.T) {
	a := netip.MustParseAddrPort("10.0.0.1:80")
	old := []netip.AddrPort{a, a}
	for _, place := range []func([]netip.AddrPort, []plan.Endpoint) []netip.AddrPort{placeSlots, orderedSlots} {
		if got := place(old, []plan.Endpoint{{AddrPort: a}, {AddrPort: a}}); &got[0] != &old[0] {
			t.Error("slots that stay are copied")
		}
	}
}
