package nftwalk

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
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
	// IPVS is what the kernel's virtual servers do; nil: there are none.
	IPVS *IPVS
}

// IPVS is virtual servers as the walk sees them. They are asked where ipvs is: among what is for the node, and among
// what the node sends.
type IPVS struct {
	// Has reports whether an address is on the device that makes those of virtual servers the node's own.
	Has func(netip.Addr) bool
	// Pick is the endpoints of the virtual server for an address, or for a packet mark, which comes first. It reports
	// false where there is none: then ipvs leaves the packet alone. Of one without endpoints packets are refused.
	Pick func(to netip.AddrPort, p model.Protocol, mark uint32) ([]plan.Endpoint, bool)
}

// local reports whether an address is one of the node's own.
func (h Host) local(a netip.Addr) bool {
	return a.IsLoopback() || slices.Contains(h.Addrs, a) || h.IPVS != nil && h.IPVS.Has(a)
}
