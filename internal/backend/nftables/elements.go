package nftables

import (
	"net/netip"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
)

// elements yields the port's own elements of one set, each in e; those that it shares with others are yielded by
// [port.shared]. It reports false if it was told to stop.
func (p *port) elements(set setID, e *nft.Element, yield func(*nft.Element) bool) bool {
	if set < bothFamilies && set.family() != p.family() {
		return true
	}
	for i := range p.lists {
		l := &p.lists[i]
		n, element := l.part(set)
		for i := range n {
			if *e = element(l, p, i); !yield(e) {
				return false
			}
		}
	}
	if !p.mayHave(set) {
		return true
	}
	more := true
	p.frontendsIn(e, func(s setID, own *nft.Element) bool {
		more = s != set || yield(own)
		return more
	})
	return more
}

// mayHave reports whether frontends may yield elements of a set, so that it is not asked in vain.
func (p *port) mayHave(set setID) bool {
	switch set.ofIPv4() {
	case setServices:
		return true
	case setNodePorts:
		n := len(p.plan.Frontends) // they are by kind
		return n > 0 && p.plan.Frontends[n-1].Kind == plan.NodePort
	case setOutside, setOutsideNodePorts:
		return differ(p.plan.External)
	case setHealthChecks:
		return p.healthCheck != 0
	case setAllowed, setGuarded:
		return p.plan.Sources != nil
	}
	return false
}

// tally counts the port's elements in the sets that have a size, times by.
func (p *port) tally(counts *[setCount]int, by int) {
	f := p.family()
	for i := range p.lists {
		l := &p.lists[i]
		counts[setEndpoints.of(f)] += by * l.slotCount()
		counts[setHairpin.of(f)] += by * len(l.endpoints)
		counts[setAffineEndpoints.of(f)] += by * len(l.affine)
		counts[setAffineSlots.of(f)] += by * l.affineSlots()
	}
	counts[setConnections] += by * len(p.lists)
	for _, s := range [...]setID{setClusterIPs, setServices, setOutside} {
		counts[s.of(f)] += by * len(p.plan.Frontends)
	}
}

// part is the number of elements that the list has in a set, and what makes them.
func (l *list) part(set setID) (n int, element func(*list, *port, int) nft.Element) {
	if l.number == 0 {
		return 0, nil
	}
	switch set {
	case setConnections:
		return 1, func(l *list, p *port, _ int) nft.Element { return l.connections(p.plan.ID) }
	case setRoundRobin:
		if l.takesTurns() {
			n = 1
		}
		return n, func(l *list, _ *port, _ int) nft.Element { return l.turns() }
	}
	switch set.ofIPv4() {
	case setEndpoints:
		return l.slotCount(), func(l *list, _ *port, i int) nft.Element { return l.slot(i) }
	case setMarks:
		if l.mark != 0 {
			n = 1
		}
		return n, func(l *list, _ *port, _ int) nft.Element { return l.marked() }
	case setAffineSlots:
		return l.affineSlots(), func(l *list, _ *port, i int) nft.Element { return l.affineSlot(i) }
	case setAffineEndpoints:
		return len(l.affine), func(l *list, _ *port, i int) nft.Element { return l.affineEndpoint(i) }
	}
	return 0, nil
}

// affineSlots is the number of slots for clients that are to come back.
func (l *list) affineSlots() int {
	if l.affine == nil {
		return 0
	}
	return l.slotCount()
}

// slotKey is the key of a slot.
func (l *list) slotKey(i int) (v nft.Value) {
	v.AppendUint32(l.number.key())
	v.AppendUint32(uint32(i))
	return v
}

func target(a netip.AddrPort) (v nft.Value) {
	v.AppendAddr(a.Addr())
	v.AppendPort(a.Port())
	return v
}

// slot is the element of a slot.
func (l *list) slot(i int) nft.Element {
	return nft.Element{Key: l.slotKey(i), Data: target(l.at(i))}
}

// affineSlot is the element of a slot for clients that are to come back.
func (l *list) affineSlot(i int) nft.Element {
	return nft.Element{Key: l.slotKey(i), Data: nft.Value{}.Uint32(l.affineID(l.affineNumber(l.at(i))))}
}

// affineEndpoint is the element of an endpoint that clients come back to.
func (l *list) affineEndpoint(i int) nft.Element {
	return nft.Element{Key: nft.Value{}.Uint32(l.affineID(l.affine[i])), Data: target(l.endpoints[i].AddrPort)}
}

// connections is the element that counts new connections.
func (l *list) connections(id plan.PortID) nft.Element {
	return nft.Element{Key: nft.Value{}.Uint32(l.number.key()), Comment: nft.CleanComment(id.String())}
}

// marked is the element that leads to the list's virtual server.
func (l *list) marked() nft.Element {
	return nft.Element{Key: nft.Value{}.Uint32(l.number.key()), Data: nft.Value{}.Uint32(l.mark)}
}

// turns is the element that leads to the list's own chain.
func (l *list) turns() nft.Element {
	return nft.Element{
		Key: nft.Value{}.Uint32(l.number.key()), Verdict: nft.Verdict{Kind: nft.Goto, Chain: turnsChain(l.number)},
	}
}

// frontends yields the elements by which clients find the port, and those by which some are kept out. The element is
// the same one each time.
func (p *port) frontends(yield func(setID, *nft.Element) bool) { p.frontendsIn(&nft.Element{}, yield) }

// frontendsIn is frontends with the element that is to be used.
func (p *port) frontendsIn(e *nft.Element, yield func(setID, *nft.Element) bool) {
	*e = nft.Element{Comment: nft.CleanComment(p.plan.ID.String())}
	internal, external := p.routes(plan.ClusterIP), p.routes(plan.ExternalIP)
	for _, fe := range p.plan.Frontends {
		rs := external
		if fe.Kind == plan.ClusterIP {
			rs = internal
		}
		all, outside, key := frontendKey(fe.Key)
		e.Key = key
		if e.Data = rs.outside.value(); rs.differ && !yield(outside, e) {
			return
		}
		if e.Data = rs.main.value(); !yield(all, e) || !p.guard(fe, e.Comment, yield) {
			return
		}
	}
	if p.healthCheck != 0 {
		e.Key, e.Data = nft.Value{}.Proto(uint8(model.TCP)).Port(p.healthCheck), nft.Value{}
		yield(setHealthChecks.of(p.family()), e)
	}
}

// frontendKey is the key of a frontend, and the maps of routes that have it.
func frontendKey(k plan.Key) (all, outside setID, key nft.Value) {
	f := model.FamilyOf(k.Addr)
	if k.Addr.IsUnspecified() {
		return setNodePorts.of(f), setOutsideNodePorts.of(f), nft.Value{}.Proto(uint8(k.Protocol)).Port(k.Port)
	}
	return setServices.of(f), setOutside.of(f), nft.Value{}.Addr(k.Addr).Proto(uint8(k.Protocol)).Port(k.Port)
}

// guard yields what keeps clients from other sources away. It reports false if it is to stop.
func (p *port) guard(fe plan.Frontend, name string, yield func(setID, *nft.Element) bool) bool {
	if fe.Kind != plan.LoadBalancerIP || p.plan.Sources == nil {
		return true
	}
	key := func(v nft.Value) nft.Value { return v.Addr(fe.Addr).Proto(uint8(fe.Protocol)).Port(fe.Port) }
	f := p.family()
	for _, s := range p.sources {
		e := nft.Element{Key: key(nft.Value{}.Addr(s.Addr())), End: key(nft.Value{}.Addr(nft.LastOf(s))), Comment: name}
		if !yield(setAllowed.of(f), &e) {
			return false
		}
	}
	e := nft.Element{Key: key(nft.Value{}), Comment: name}
	return yield(setGuarded.of(f), &e)
}
