package nftables

import (
	"net/netip"
	"slices"

	"sluice/internal/nft"
	"sluice/internal/plan"
)

// held is the numbers that a table in the kernel uses. Make one with newHeld, tell it the table's sets with size and its
// elements with take, in any order, and hand it to [Ruleset.adopt].
type held struct {
	routes  map[setKey]route
	lists   map[listNumber]*list
	marks   map[listNumber]uint32
	buckets bucketTable
	sizes   [setCount]uint32
}

func newHeld() *held {
	return &held{routes: map[setKey]route{}, lists: map[listNumber]*list{}, marks: map[listNumber]uint32{}}
}

// size takes the size that a set was made with.
func (h *held) size(set setID, size uint32) {
	if minSizes[set] != 0 {
		h.sizes[set] = size
	}
}

// take takes an element. What makes no sense is left out: then it is not wanted either, and goes.
func (h *held) take(set setID, e *nft.Element) {
	key, data := nft.NewReader(e.Key), nft.NewReader(e.Data)
	switch {
	case e.Key.IsZero(): // one for all keys
	case set == setBuckets:
		n := bucketNumber(key.Uint32() & maskBucket >> shiftBucket)
		if b, ok := bucketOf(e.Verdict.Chain); ok && n >= firstBucket {
			h.buckets[n] = b
		}
	case set.ofIPv4() == setMarks:
		h.marks[listNumber(key.Uint32()>>shiftList)] = data.Uint32()
	case set.ofIPv4() == setEndpoints:
		h.slot(listNumber(key.Uint32()>>shiftList), key.Uint32(), targetOf(set, data))
	case set.ofIPv4() == setAffineEndpoints:
		id := key.Uint32()
		h.endpoint(listNumber(id>>shiftList), uint16(id%(1<<shiftList)), targetOf(set, data))
	case isRoutes(set):
		h.routes[setKey{set: set, key: e.Key}] = route(data.Uint32())
	}
}

// isRoutes reports whether a set is a map of routes.
func isRoutes(s setID) bool {
	switch s.ofIPv4() {
	case setOutside, setOutsideNodePorts, setServices, setNodePorts:
		return true
	}
	return false
}

// targetOf reads an endpoint.
func targetOf(set setID, r *nft.Reader) netip.AddrPort {
	addr := r.Addr4
	if set.family() != 0 {
		addr = r.Addr16
	}
	return netip.AddrPortFrom(addr(), r.Port())
}

func (h *held) list(n listNumber) *list {
	l := h.lists[n]
	if l == nil {
		l = &list{number: n}
		h.lists[n] = l
	}
	return l
}

// maxHeldSlots is up to how many slots of a list keep their places: whoever writes an element beyond must not have us
// make room for all before it.
const maxHeldSlots = 1 << 16

func (h *held) slot(n listNumber, at uint32, to netip.AddrPort) {
	if at >= maxHeldSlots {
		return
	}
	l := h.list(n)
	if missing := int(at) + 1 - len(l.slots); missing > 0 {
		l.slots = append(l.slots, make([]netip.AddrPort, missing)...)
	}
	l.slots[at] = to
}

// endpoint enters an endpoint and its number.
func (h *held) endpoint(n listNumber, number uint16, to netip.AddrPort) {
	l := h.list(n)
	at, twice := l.find(to)
	if twice || number == 0 {
		return
	}
	l.endpoints = slices.Insert(l.endpoints, at, plan.Endpoint{AddrPort: to})
	l.affine = slices.Insert(l.affine, at, number)
	l.lastAffine = max(l.lastAffine, number)
}

// adopt numbers everything anew, and as the table has it where it has something like it. So a table that was written
// for the same plan needs no change. Call it before anything of the Ruleset is written.
func (r *Ruleset) adopt(h *held) {
	r.stocks, r.dirty.table = newStocks(r.opts, h.buckets), true
	for n := range h.lists {
		r.lists.last = max(r.lists.last, uint32(n)) // the numbers of those that are gone are not used again at once
	}
	for _, mark := range h.marks {
		r.marks.numbers.last = max(r.marks.numbers.last, r.marks.number(mark))
	}
	r.sizes = sizes{size: h.sizes}
	old := r.sorted()
	clear(r.ports)
	r.inOrder = make([]*port, 0, len(old))
	numbers := r.numbersOf(h, old)
	for i, p := range old {
		r.put(p.plan.ID, p.plan, numbers[i])
		r.release(&port{lists: numbers[i]}, r.ports[p.plan.ID])
	}
	r.adopted = true
	r.grow()
}

// numbersOf finds the lists of all ports, and their marks, before any port takes new ones.
func (r *Ruleset) numbersOf(h *held, ports []*port) [][2]list {
	all := make([][2]list, len(ports))
	for i, p := range ports {
		all[i] = h.numbersFor(p.plan, &r.lists)
		for j := range all[i] {
			r.keepMark(&all[i][j], h.marks[all[i][j].number], p.lists[j].mark)
		}
	}
	return all
}

// keepMark has a list keep the mark that it has in the kernel, or, once anybody may know them, in the Ruleset.
func (r *Ruleset) keepMark(l *list, inKernel, here uint32) {
	if l.mark = inKernel; r.adopted {
		l.mark = here
	}
	if !r.marks.reserve(l.mark) {
		l.mark = 0
	}
}

// numbersFor finds the lists that frontends of a port lead to in the kernel, and reserves their numbers: the first port
// to ask for one has it.
func (h *held) numbersFor(p *plan.Port, stock *numbers) (lists [2]list) {
	seen := func(set setID, key nft.Value, r plan.Route) {
		n := h.routes[setKey{set: set, key: key}].list()
		if n == 0 || r.Action != plan.Forward {
			return
		}
		if l := &lists[indexOf(r.List)]; l.number == 0 && stock.reserve(uint32(n)) {
			*l = *h.list(n)
		}
	}
	for _, fe := range p.Frontends {
		all, outside, key := frontendKey(fe.Key)
		access := p.Access(fe.Kind)
		seen(all, key, access[plan.ClientPod])
		seen(outside, key, access[plan.ClientOutside])
	}
	return lists
}
