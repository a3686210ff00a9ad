package nftables

import (
	"errors"
	"slices"

	"sluice/internal/backend"
)

// numbers gives out the numbers of lists, from 1. The next one is given, so that a number given back is not used again
// at once: packets on their way and affinity entries may still have it.
type numbers struct {
	used []uint64 // bits; as long as the greatest number needs
	last uint32
	max  uint32
}

var errNoNumber = &backend.Declined{By: "mode nftables", Err: errors.New("too many lists of endpoints")}

// take gives out a number.
func (n *numbers) take() (uint32, error) {
	for i := range n.max {
		next := (n.last+i)%n.max + 1
		if n.reserve(next) {
			n.last = next
			return next, nil
		}
	}
	return 0, errNoNumber
}

// reserve takes a number that somebody has in the kernel. It reports false if it is given out already.
func (n *numbers) reserve(number uint32) bool {
	word, bit := int(number/64), uint64(1)<<(number%64)
	if word >= len(n.used) {
		n.used = append(n.used, make([]uint64, word+1-len(n.used))...)
	}
	if number == 0 || number > n.max || n.used[word]&bit != 0 {
		return false
	}
	n.used[word] |= bit
	return true
}

// give gives a number back.
func (n *numbers) give(number uint32) { n.used[number/64] &^= 1 << (number % 64) }

// maxAffine is how many endpoints a list with session affinity may have: their numbers are in the low bits, where
// routes have their other parts.
const maxAffine = 1<<shiftList - 1

// nextAffine is the next number for an endpoint of a list after last that none of used has. There is one.
func nextAffine(last uint16, used []uint16) uint16 {
	for {
		if last = last%maxAffine + 1; !slices.Contains(used, last) {
			return last
		}
	}
}
