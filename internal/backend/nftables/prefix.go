package nftables

import (
	"net/netip"
	"slices"
)

// lastOf is the last address of a masked range.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		if host := 8*(i+1) - p.Bits(); host > 0 {
			b[i] |= byte(1<<min(host, 8) - 1)
		}
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// withoutContained are masked ranges without those that lie within another: sets of ranges take no two that overlap.
func withoutContained(ps []netip.Prefix) []netip.Prefix {
	sorted := slices.SortedFunc(slices.Values(ps), netip.Prefix.Compare)
	kept := sorted[:0]
	for _, p := range sorted {
		// Whatever sorts between a range and one inside it lies inside it too, and is gone by now.
		if len(kept) == 0 || !kept[len(kept)-1].Overlaps(p) {
			kept = append(kept, p)
		}
	}
	return kept
}
