package backend

// A packet mark leads clients outside to a virtual server of their own, in mode ipvs. It has one bit that is set in all, a
// number, and room for the bit that masquerades: a small number alone might as well be somebody else's mark, and ipvs would
// take all packets that are for this node and have it.
const (
	// MaxMark is the largest number.
	MaxMark  uint32 = 1<<13 - 1
	baseMark uint32 = 1 << 13
)

// Mark is the packet mark of a number; masquerade is the bit that masquerades.
func Mark(number, masquerade uint32) uint32 {
	low := masquerade - 1
	n := number | baseMark
	return n&low | n&^low<<1
}

// MarkNumber is the number of a mark, 0 if it is none of these.
func MarkNumber(mark, masquerade uint32) uint32 {
	low := masquerade - 1
	if n := (mark&low | mark>>1&^low) & MaxMark; Mark(n, masquerade) == mark {
		return n
	}
	return 0
}
