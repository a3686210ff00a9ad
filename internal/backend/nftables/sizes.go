package nftables

// minSizes are the smallest sizes of the sets that have one; the others take what comes. With a size the kernel uses a
// hash table that is twice as fast to fill and never grows.
var minSizes = [setCount]uint32{
	setHairpin: 1 << 14, setHairpin + 1: 1 << 14, setEndpoints: 1 << 14, setEndpoints + 1: 1 << 14,
	setAffineEndpoints: 1 << 12, setAffineEndpoints + 1: 1 << 12, setAffineSlots: 1 << 12, setAffineSlots + 1: 1 << 12,
	setClusterIPs: 1 << 12, setClusterIPs + 1: 1 << 12, setOutside: 1 << 12, setOutside + 1: 1 << 12,
	setServices: 1 << 12, setServices + 1: 1 << 12, setConnections: 1 << 13,
}

// sizes are those of the sets that have one, and how many elements they are to hold at most. Elements that Service ports
// share are counted for each of them.
//
// The kernel takes a size when a set is made and never changes it, so that to grow is to make the table anew.
type sizes struct {
	size  [setCount]uint32
	count [setCount]int
}

// grow makes sizes great enough, with room for what comes before what goes, and reports whether any had to change.
func (s *sizes) grow() (grown bool) {
	for id, least := range minSizes {
		if least == 0 {
			continue
		}
		size := max(s.size[id], least)
		for s.count[id] > int(size)/4*3 {
			size *= 2
		}
		grown = grown || size != s.size[id]
		s.size[id] = size
	}
	return grown
}

// large reports whether there are, or were, so many endpoints that to bind a rule to their map takes long.
func (s *sizes) large() bool {
	return s.size[setEndpoints] > minSizes[setEndpoints] || s.size[setEndpoints+1] > minSizes[setEndpoints+1]
}
