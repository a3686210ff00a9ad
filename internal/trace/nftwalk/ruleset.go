package nftwalk

import (
	"net/netip"
	"slices"

	"sluice/internal/nft"
)

// Ruleset is a table as the walk sees it. What it hands out is only read.
type Ruleset interface {
	// Chains are all chains of the table.
	Chains() []*nft.Chain
	// Chain is nil where there is none of that name.
	Chain(name string) *nft.Chain
	// Set is the declaration of a set or map, nil where there is none of that name.
	Set(name string) *nft.Set
	// Find is the element of a set that has the key, or, in one of intervals, whose range has it.
	Find(set string, key nft.Value) (nft.Element, bool)
}

// Host is what the walk must know of the node besides its rules.
type Host struct {
	// Addrs are the node's own addresses. Loopback addresses are its own without being listed.
	Addrs []netip.Addr
	// RouteLocalnet: the kernel takes packets for 127.0.0.0/8 from the network (net.ipv4.conf.*.route_localnet).
	RouteLocalnet bool
}

// local reports whether an address is one of the node's own.
func (h Host) local(a netip.Addr) bool { return a.IsLoopback() || slices.Contains(h.Addrs, a) }
