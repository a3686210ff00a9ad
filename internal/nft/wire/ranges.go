package wire

import (
	"bytes"
	"slices"

	"sluice/internal/nft"
)

// Ranges joins the elements of an Interval set of one field to ranges, in order. The kernel tells of the start of each
// range and, apart from it, of what is behind the end, in any order.
func Ranges(s *nft.Set, elements []Element) (ranges []nft.Element) {
	n := keyLen(s.Key)
	sorted := slices.Clone(elements)
	slices.SortFunc(sorted, byKey)
	for i, e := range sorted {
		switch {
		case e.Behind:
			continue
		case e.Key.IsZero(): // it has no end
		case i+1 < len(sorted):
			e.End = before(sorted[i+1].Key, n)
		default:
			e.End = top(e.Key, n)
		}
		if e.End == e.Key {
			e.End = nft.Value{}
		}
		ranges = append(ranges, e.Element)
	}
	return ranges
}

func byKey(a, b Element) int {
	if c := bytes.Compare(a.Key.AppendTo(nil), b.Key.AppendTo(nil)); c != 0 {
		return c
	}
	switch {
	case a.Behind == b.Behind:
		return 0
	case a.Behind: // one range ends where the next begins
		return -1
	}
	return 1
}

// after is the key after v, of which n bytes count. Only of the greatest there is none.
func after(v nft.Value, n int) nft.Value { return count(v, n, 1, 0) }

// before is the key before v.
func before(v nft.Value, n int) nft.Value { return count(v, n, 0xff, 0xff) }

// count adds a step to the last of n bytes, and to those before it while one becomes carry.
func count(v nft.Value, n int, step, carry byte) nft.Value {
	b := v.AppendTo(nil)
	for i := min(n, len(b)) - 1; i >= 0; i-- {
		if b[i] += step; b[i] != carry {
			break
		}
	}
	return nft.ValueOf(b)
}

// top is the greatest key, padded as v is.
func top(v nft.Value, n int) nft.Value {
	b := make([]byte, v.Len())
	for i := range min(n, len(b)) {
		b[i] = 0xff
	}
	return nft.ValueOf(b)
}
