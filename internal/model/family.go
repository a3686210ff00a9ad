package model

import "net/netip"

// Family is an IP address family. Its values index arrays of two: one entry for IPv4, one for IPv6.
type Family uint8

// The two families.
const (
	IPv4 Family = iota
	IPv6
)

// Families lists both, in the order in which they are worked on.
var Families = [...]Family{IPv4, IPv6}

// String is "IPv4" or "IPv6".
func (f Family) String() string {
	if f == IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// Bits is the length of an address: 32 or 128.
func (f Family) Bits() int {
	if f == IPv6 {
		return 128
	}
	return 32
}

// Unspecified is the address that stands for all of the family: 0.0.0.0 or ::.
func (f Family) Unspecified() netip.Addr {
	if f == IPv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// FamilyOf is the family of a valid address.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}
