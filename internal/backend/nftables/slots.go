package nftables

import (
	"net/netip"

	"sluice/internal/plan"
)

// slotCount is the number of slots.
func (l *list) slotCount() int {
	if l.slots == nil {
		return len(l.endpoints)
	}
	return len(l.slots)
}

// at is the endpoint that has a slot.
func (l *list) at(slot int) netip.AddrPort {
	if l.slots == nil {
		return l.endpoints[slot].AddrPort
	}
	return l.slots[slot]
}

// targets are the endpoints that have the slots.
func (l *list) targets() []netip.AddrPort {
	if l.slots == nil {
		return orderedSlots(nil, l.endpoints)
	}
	return l.slots
}

// fits reports whether want can have the slots in its order: nobody had any, or they are the same.
func (l *list) fits(want []plan.Endpoint) bool {
	n := l.slotCount()
	for i := range n {
		if n != len(want) || l.at(i) != want[i].AddrPort {
			return false
		}
	}
	return true
}

// placeSlots puts the endpoints that are wanted, each as often as it is in want, into as many slots. Who has a slot
// keeps it; a slot that becomes free goes to who had one beyond the new end, then to who is new. So a change of one
// endpoint changes one slot. If nothing changes, old itself is returned. An old slot that is empty is the zero value.
func placeSlots(old []netip.AddrPort, want []plan.Endpoint) []netip.AddrPort {
	if len(old) == 0 || sameSlots(old, want) {
		return orderedSlots(old, want)
	}
	missing := make(map[netip.AddrPort]int, len(want))
	for i := range want {
		missing[want[i].AddrPort]++
	}
	slots := make([]netip.AddrPort, len(want))
	for i := range min(len(old), len(want)) {
		if missing[old[i]] > 0 {
			missing[old[i]]--
			slots[i] = old[i]
		}
	}
	free := 0
	place := func(a netip.AddrPort) {
		if missing[a] == 0 {
			return
		}
		for slots[free].IsValid() {
			free++
		}
		missing[a]--
		slots[free] = a
	}
	for i := len(want); i < len(old); i++ {
		place(old[i])
	}
	for i := range want {
		place(want[i].AddrPort)
	}
	return slots
}

func sameSlots(old []netip.AddrPort, want []plan.Endpoint) bool {
	if len(old) != len(want) {
		return false
	}
	for i := range want {
		if old[i] != want[i].AddrPort {
			return false
		}
	}
	return true
}

// orderedSlots is want as it stands, for lists whose order matters.
func orderedSlots(old []netip.AddrPort, want []plan.Endpoint) []netip.AddrPort {
	if sameSlots(old, want) {
		return old
	}
	slots := make([]netip.AddrPort, len(want))
	for i := range want {
		slots[i] = want[i].AddrPort
	}
	return slots
}
