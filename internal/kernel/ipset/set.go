package ipset

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Types of sets.
const (
	HashIP        = "hash:ip"
	HashIPPort    = "hash:ip,port"
	HashIPPortIP  = "hash:ip,port,ip"
	HashIPPortNet = "hash:ip,port,net"
	BitmapPort    = "bitmap:port"
)

// MaxName is the length of the longest name of a set.
const MaxName = 31

// Header is what a set is made with.
type Header struct {
	Name string
	Type string // one of the above, when a set is to be made
	// IPv6 is the family of a hash. A bitmap:port has none, and all ports.
	IPv6 bool
	// HashSize and MaxElem are a hash's first size and the most entries that it takes; 0: the kernel's own choice.
	HashSize, MaxElem uint32
	// Marks lets each entry have a mark, for "-j SET --map-set … --map-mark" (Linux 3.18).
	Marks bool
	// Other is set if the set has what this package does not make: counters, comments, timeouts, another range of ports.
	Other bool
}

// Set is a set as the kernel has it.
type Set struct {
	Header
	// References is the number of rules, and of sets of sets, that name it.
	References uint32
	Entries    []Item
}

// Entry is what an entry is for; what the set's type does not have is zero.
type Entry struct {
	Addr     netip.Addr
	Protocol uint8 // its number, in the types with an address and a port
	Port     uint16
	Net      netip.Prefix // the third part: one address in hash:ip,port,ip
	NoMatch  bool         // of hash:ip,port,net: what is in here is not in the set
}

// Item is an entry and the mark that it gives packets, whole; 0: none.
type Item struct {
	Entry
	Mark uint32
}

// String is the entry as ipset save prints it.
func (i Item) String() string {
	text := i.Entry.String()
	if i.Mark != 0 {
		text += fmt.Sprintf(" skbmark %#x", i.Mark)
	}
	return text
}

// String is the entry as ipset save prints it.
func (e Entry) String() string {
	var parts []string
	if e.Addr.IsValid() {
		parts = append(parts, e.Addr.String())
	}
	switch {
	case e.Protocol != 0:
		parts = append(parts, protocolName(e.Protocol)+":"+strconv.Itoa(int(e.Port)))
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

func protocolName(number uint8) string {
	if name, ok := map[uint8]string{6: "tcp", 17: "udp", 132: "sctp"}[number]; ok {
		return name
	}
	return strconv.Itoa(int(number))
}
