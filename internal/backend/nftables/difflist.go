package nftables

import "sluice/internal/nft"

// side is a list of a port, before or after a change.
type side struct {
	*list
	port *port
}

// list collects what turns one list of a port into another.
func (d *delta) list(old, now side) {
	if old.number == now.number {
		if old.number != 0 {
			d.slots(old, now)
			d.affineSlots(old, now)
			d.affineEndpoints(old, now)
			d.marks(old, now)
			d.turns(old, now)
		}
		return
	}
	// The numbers have nothing to do with each other.
	if old.number != 0 {
		d.list(old, side{&list{number: old.number}, old.port})
		e := old.connections(old.port.plan.ID)
		d.remove[setConnections] = append(d.remove[setConnections], e)
	}
	if now.number != 0 {
		d.list(side{&list{number: now.number}, now.port}, now)
		e := now.connections(now.port.plan.ID)
		d.add[setConnections] = append(d.add[setConnections], e)
	}
}

// slots collects those that differ. Slots beyond the end of a list that shrinks go last, since packets on their way may
// have been sent to the chain for as many as there were.
func (d *delta) slots(old, now side) {
	set := setEndpoints.of(old.port.family())
	d.eachSlot(set, old, now, old.slotCount(), now.slotCount(), (*list).slot, func(i int) bool { return old.at(i) == now.at(i) })
}

// affineSlots collects those of session affinity in the same way.
func (d *delta) affineSlots(old, now side) {
	set := setAffineSlots.of(old.port.family())
	d.eachSlot(set, old, now, old.affineSlots(), now.affineSlots(), (*list).affineSlot, func(i int) bool {
		return old.at(i) == now.at(i) && old.affineNumber(old.at(i)) == now.affineNumber(old.at(i))
	})
}

func (d *delta) eachSlot(set setID, old, now side, was, is int, element func(*list, int) nft.Element, same func(int) bool) {
	for i := range max(was, is) {
		switch {
		case i >= was:
			d.add[set] = append(d.add[set], element(now.list, i))
		case i >= is:
			d.last[set] = append(d.last[set], element(old.list, i))
		case !same(i):
			d.remove[set] = append(d.remove[set], element(old.list, i))
			d.add[set] = append(d.add[set], element(now.list, i))
			d.changed++
		}
	}
}

// affineEndpoints collects the endpoints that clients come back to. One that is gone goes at once: its clients are sent
// to another.
func (d *delta) affineEndpoints(old, now side) {
	set := setAffineEndpoints.of(old.port.family())
	for i, n := range old.affine {
		if a := old.endpoints[i].AddrPort; now.affineNumber(a) != n {
			d.remove[set] = append(d.remove[set], old.affineEndpoint(i))
		}
	}
	for i, n := range now.affine {
		if a := now.endpoints[i].AddrPort; old.affineNumber(a) != n {
			d.add[set] = append(d.add[set], now.affineEndpoint(i))
		}
	}
}

// marks collects the mark of a virtual server. It does not change while a list has one.
func (d *delta) marks(old, now side) {
	set := setMarks.of(old.port.family())
	switch {
	case old.mark == now.mark:
	case now.mark != 0:
		d.add[set] = append(d.add[set], now.marked())
	default:
		d.last[set] = append(d.last[set], old.marked())
	}
}

// turns collects the chain of a list whose endpoints take turns.
func (d *delta) turns(old, now side) {
	had, has := old.takesTurns(), now.takesTurns()
	switch {
	case has && !had:
		d.newChains = append(d.newChains, now.port.turnsChain(now.list))
		d.add[setRoundRobin] = append(d.add[setRoundRobin], now.turns())
	case has && (old.slotCount() != now.slotCount() || old.affinity(old.port.plan) != now.affinity(now.port.plan)):
		d.chains = append(d.chains, now.port.turnsChain(now.list))
	case had && !has:
		d.last[setRoundRobin] = append(d.last[setRoundRobin], old.turns())
		d.lastChains = append(d.lastChains, turnsChain(old.number))
	}
}

// share collects the elements that ports share.
func (d *delta) share(old, now *port) {
	for k := range old.shared {
		if !now.shares(k) {
			d.shared = append(d.shared, sharedChange{k, -1, old.plan.ID.Service})
		}
	}
	for k := range now.shared {
		if !old.shares(k) {
			d.shared = append(d.shared, sharedChange{k, 1, now.plan.ID.Service})
		}
	}
}
