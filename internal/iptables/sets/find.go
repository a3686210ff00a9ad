package sets

import (
	"net/netip"

	"sluice/internal/model"
)

// Packet is what a set may be asked about: the parts that the rule takes from the packet, in the set's order.
type Packet struct {
	Addr     netip.Addr
	Protocol model.Protocol
	Port     uint16
	Third    netip.Addr
}

// Find looks a packet up. The mark is the entry's.
func (s *Set) Find(p Packet) (mark uint32, found bool) {
	if s.Type != BitmapPort && model.FamilyOf(p.Addr) != s.Family {
		return 0, false
	}
	switch s.Type {
	case HashIP:
		return s.find(Entry{Addr: p.Addr})
	case HashIPPort:
		return s.find(Entry{Addr: p.Addr, Protocol: uint8(p.Protocol), Port: p.Port})
	case BitmapPort:
		if p.Protocol != model.TCP && p.Protocol != model.UDP {
			return 0, false
		}
		return s.find(Entry{Port: p.Port})
	}
	return s.findNet(Entry{Addr: p.Addr, Protocol: uint8(p.Protocol), Port: p.Port}, p.Third)
}

func (s *Set) find(e Entry) (mark uint32, found bool) {
	mark, found = s.Entries[e]
	return mark, found
}

// findNet takes the longest range that holds an address.
func (s *Set) findNet(e Entry, third netip.Addr) (mark uint32, found bool) {
	for bits := third.BitLen(); bits >= 0; bits-- {
		e.Net, _ = third.Prefix(bits)
		if _, excepted := s.find(Entry{e.Addr, e.Protocol, e.Port, e.Net, true}); excepted {
			return 0, false
		}
		if mark, found = s.find(e); found {
			return mark, true
		}
	}
	return 0, false
}
