package iptwalk

import (
	"net/netip"
	"slices"

	"sluice/internal/iptables/sets"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// Host is what the walk must know of the node besides its rules.
type Host struct {
	// Addrs are the node's own addresses. Loopback addresses are its own without being listed.
	Addrs []netip.Addr
	// RouteLocalnet: the kernel takes packets for 127.0.0.0/8 from the network (net.ipv4.conf.*.route_localnet).
	RouteLocalnet bool
	// Route gives the interface by which packets to an address leave, or "" where that is not known. It may be nil.
	Route func(netip.Addr) string
	// Sets finds a set by its name; nil: there is none, or nobody knows what is in it. It may be nil itself.
	Sets func(name string) *sets.Set
	// Balance finds the endpoints of the virtual server (ipvs) that takes a packet for an address, with the mark that it
	// has by then. It reports false if there is none. It may be nil.
	Balance func(to netip.AddrPort, p model.Protocol, mark uint32) ([]plan.Endpoint, bool)
}

// local reports whether an address is one of the node's own.
func (h Host) local(a netip.Addr) bool { return a.IsLoopback() || slices.Contains(h.Addrs, a) }

// out is the interface towards an address, or "" if that is not known.
func (h Host) out(a netip.Addr) string {
	switch {
	case h.local(a):
		return "lo"
	case h.Route == nil:
		return ""
	}
	return h.Route(a)
}

// addrType is the type of an address as the addrtype match names it.
func (h Host) addrType(a netip.Addr) string {
	switch {
	case a == netip.IPv4Unspecified(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "BROADCAST" // as the kernel's inet_addr_type says of 0.0.0.0, too
	case a.IsMulticast():
		return "MULTICAST"
	case h.local(a):
		return "LOCAL"
	}
	return "UNICAST"
}
