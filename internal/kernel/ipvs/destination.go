package ipvs

import (
	"net/netip"

	"github.com/cloudflare/ipvs"
)

// Destination is where a virtual server sends connections to.
type Destination struct {
	netip.AddrPort
	// Weight is its part of new connections, where the scheduler asks for it. With 0 it gets none, and keeps those it has.
	Weight uint32
}

// FoundDestination is a destination as the kernel has it.
type FoundDestination struct {
	Destination
	// Active are connections in use and Inactive those that end, or of a protocol that has no end.
	Active, Inactive uint32
	// Received and Sent are packets from and to clients.
	Received, Sent uint64
	// Elsewise is set where packets are forwarded in another way than by translating addresses.
	Elsewise bool
}

func (d Destination) destination() ipvs.Destination {
	return ipvs.Destination{
		Address: d.Addr(), Port: d.Port(), Family: family(d.Addr()), Weight: d.Weight, FwdMethod: ipvs.Masquerade,
	}
}

// forwardMask are the bits of the kernel's connection flags that are the forwarding method.
const forwardMask = 0x7

func foundDestination(d ipvs.DestinationExtended) FoundDestination {
	return FoundDestination{
		Destination: Destination{AddrPort: netip.AddrPortFrom(d.Address, d.Port), Weight: d.Weight},
		Active:      d.ActiveConnections,
		Inactive:    d.InactiveConnections,
		Received:    max(d.Stats.IncomingPackets, d.Stats64.IncomingPackets),
		Sent:        max(d.Stats.OutgoingPackets, d.Stats64.OutgoingPackets),
		Elsewise:    d.FwdMethod&forwardMask != ipvs.Masquerade,
	}
}
