package sets

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/model"
)

// Type is what the entries of a set are made of.
type Type string

// The types, as ipset names them.
const (
	HashIP        Type = "hash:ip"
	HashIPPort    Type = "hash:ip,port"
	HashIPPortIP  Type = "hash:ip,port,ip"
	HashIPPortNet Type = "hash:ip,port,net"
	BitmapPort    Type = "bitmap:port" // knows no protocol but TCP and UDP
)

// Header is what a set is made with.
type Header struct {
	Name   string
	Type   Type
	Family model.Family // of a hash
	// HashSize and MaxElem are a hash's first size and the most entries that it takes.
	HashSize, MaxElem uint32
	// Marks lets each entry have a mark for packets.
	Marks bool
}

// Set is a set and its entries, each with its mark; 0: none.
type Set struct {
	Header
	Entries map[Entry]uint32
}

// Entry is what an entry is for; what the set's type does not have is zero.
type Entry struct {
	Addr     netip.Addr
	Protocol uint8 // its number, in the types with an address and a port
	Port     uint16
	Net      netip.Prefix // the third part: one address in hash:ip,port,ip
	NoMatch  bool         // of hash:ip,port,net: what is in here is not in the set
}

// Compare orders entries by their parts, in order.
func (e Entry) Compare(o Entry) int {
	for _, c := range [...]int{
		e.Addr.Compare(o.Addr), int(e.Protocol) - int(o.Protocol), int(e.Port) - int(o.Port), e.Net.Compare(o.Net),
	} {
		if c != 0 {
			return c
		}
	}
	return 0
}

// String is the entry as ipset save prints it.
func (e Entry) String() string {
	var parts []string
	if e.Addr.IsValid() {
		parts = append(parts, e.Addr.String())
	}
	switch {
	case e.Protocol != 0:
		parts = append(parts, model.Protocol(e.Protocol).Lower()+":"+strconv.Itoa(int(e.Port)))
	case !e.Addr.IsValid():
		parts = append(parts, strconv.Itoa(int(e.Port)))
	}
	switch {
	case e.Net.IsSingleIP():
		parts = append(parts, e.Net.Addr().String())
	case e.Net.IsValid():
		parts = append(parts, e.Net.String())
	}
	text := strings.Join(parts, ",")
	if e.NoMatch {
		text += " nomatch"
	}
	return text
}

// Create is the line of ipset restore that makes the set.
func (h Header) Create() string {
	text := "create " + h.Name + " " + string(h.Type)
	if h.Type == BitmapPort {
		text += " range 0-65535"
	} else {
		family := [2]string{model.IPv4: "inet", model.IPv6: "inet6"}[h.Family]
		text += fmt.Sprintf(" family %s hashsize %d maxelem %d", family, h.HashSize, h.MaxElem)
	}
	if h.Marks {
		text += " skbinfo"
	}
	return text
}

// Lines are those of ipset restore that make and fill the set, entries in order.
func (s *Set) Lines() []string {
	lines := []string{s.Create()}
	for _, e := range slices.SortedFunc(maps.Keys(s.Entries), Entry.Compare) {
		line := "add " + s.Name + " " + e.String()
		if mark := s.Entries[e]; mark != 0 {
			line += fmt.Sprintf(" skbmark %#x", mark)
		}
		lines = append(lines, line)
	}
	return lines
}
