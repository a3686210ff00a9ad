package ipvs

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/cloudflare/ipvs"
	"github.com/cloudflare/ipvs/netmask"
)

// Protocol is a protocol by its number in IP.
type Protocol uint8

// The protocols of virtual servers.
const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

// String is the name as ipvsadm -L prints it.
func (p Protocol) String() string {
	switch p {
	case TCP:
		return "TCP"
	case UDP:
		return "UDP"
	case SCTP:
		return "SCTP"
	}
	return fmt.Sprintf("protocol %d", uint8(p))
}

// Name is what tells virtual servers apart. It takes packets to an address, protocol and port, or those of a family that
// have a firewall mark, whatever they are to.
type Name struct {
	// Addr is the unspecified address of the family where there is a Mark.
	Addr     netip.Addr
	Protocol Protocol
	Port     uint16
	Mark     uint32
}

// String is like "TCP 10.96.0.10:80", "mark 5" and "mark 5 (IPv6)".
func (n Name) String() string {
	switch {
	case n.Mark == 0:
		return n.Protocol.String() + " " + netip.AddrPortFrom(n.Addr, n.Port).String()
	case n.Addr.Is6():
		return fmt.Sprintf("mark %d (IPv6)", n.Mark)
	}
	return fmt.Sprintf("mark %d", n.Mark)
}

// Flags change what a scheduler does. The kernel keeps all 32 bits, also those that it does not know.
type Flags uint32

// Flags of schedulers. They mean what the scheduler takes them for; sh-fallback and mh-fallback are the first, sh-port
// and mh-port the second.
const (
	SchedulerFlag1 Flags = 0x0008
	SchedulerFlag2 Flags = 0x0010
	SchedulerFlag3 Flags = 0x0020
)

// The flags that are not the caller's to choose: persistence follows from its time, and the kernel sets hashed by itself.
const (
	flagPersistent Flags = 0x0001
	flagHashed     Flags = 0x0002
)

// Server is a virtual server.
type Server struct {
	Name
	// Scheduler is the name of the one that spreads connections: rr, wrr, lc…
	Scheduler string
	Flags     Flags
	// Persistence is how long a client keeps its destination after its last connection, in whole seconds; 0: it has none
	// to keep.
	Persistence time.Duration
}

// FoundServer is a virtual server as the kernel has it.
type FoundServer struct {
	Server
	// Connections is how many it was sent since it was made.
	Connections uint64
	// Grouped is set where persistence is for whole networks of clients and not for each address.
	Grouped bool
}

// service is what the library calls a virtual server.
func (n Name) service() ipvs.Service {
	s := ipvs.Service{Family: family(n.Addr), FWMark: n.Mark}
	if n.Mark == 0 {
		s.Address, s.Protocol, s.Port = n.Addr, ipvs.Protocol(n.Protocol), n.Port
	}
	return s
}

func (s Server) service() ipvs.Service {
	out := s.Name.service()
	out.Scheduler = s.Scheduler
	out.Flags = ipvs.Flags(s.Flags)
	out.Timeout = uint32(s.Persistence / time.Second)
	out.Netmask = oneClient(s.Addr)
	if s.Persistence > 0 {
		out.Flags |= ipvs.Flags(flagPersistent)
	}
	return out
}

func found(s ipvs.ServiceExtended) FoundServer {
	n := Name{Addr: s.Address, Protocol: Protocol(s.Protocol), Port: s.Port, Mark: s.FWMark}
	if s.FWMark != 0 {
		n = Name{Addr: unspecified(s.Family), Mark: s.FWMark}
	}
	f := FoundServer{Server: Server{Name: n, Scheduler: s.Scheduler}, Connections: max(s.Stats.Connections, s.Stats64.Connections)}
	f.Flags = Flags(s.Flags) &^ (flagPersistent | flagHashed)
	if Flags(s.Flags)&flagPersistent != 0 {
		f.Persistence = time.Duration(s.Timeout) * time.Second
		f.Grouped = s.Netmask != oneClient(n.Addr)
	}
	return f
}

func family(a netip.Addr) ipvs.AddressFamily {
	if a.Is4() {
		return ipvs.INET
	}
	return ipvs.INET6
}

func unspecified(f ipvs.AddressFamily) netip.Addr {
	if f == ipvs.INET {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// oneClient is the mask with which each address is a client of its own.
func oneClient(a netip.Addr) netmask.Mask { return netmask.MaskFrom(a.BitLen(), a.BitLen()) }
