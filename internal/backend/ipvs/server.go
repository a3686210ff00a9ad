package ipvs

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Server names a virtual server: by the address, protocol and port that it answers at, or by a firewall mark.
type Server struct {
	// Key has nothing but the family's unspecified address where there is a Mark.
	plan.Key
	Mark uint32
}

var protocolOptions = map[model.Protocol]string{model.TCP: "-t", model.UDP: "-u", model.SCTP: "--sctp-service"}

// String is as ipvsadm has it: "-t 10.96.0.10:80", "-f 5 -6".
func (s Server) String() string {
	switch {
	case s.Mark == 0:
		return protocolOptions[s.Protocol] + " " + netip.AddrPortFrom(s.Addr, s.Port).String()
	case s.Addr.Is6():
		return fmt.Sprintf("-f %d -6", s.Mark)
	}
	return fmt.Sprintf("-f %d", s.Mark)
}

// Compare orders servers by address, port and protocol, those of marks first.
func (s Server) Compare(o Server) int {
	return cmp.Or(cmp.Compare(s.Mark, o.Mark), s.Addr.Compare(o.Addr), cmp.Compare(s.Port, o.Port), cmp.Compare(s.Protocol, o.Protocol))
}

// VirtualServer is what one is to be like. It is never changed once it is made.
type VirtualServer struct {
	Server
	// Port is the Service port that it is of.
	Port plan.PortID
	// Schedulings are how it may spread connections, the best first.
	Schedulings []Scheduling
	// Endpoints get connections, by their weights. Without any there is no virtual server, but the place is taken.
	Endpoints []plan.Endpoint
	// Draining get no new ones, and keep theirs, also of UDP.
	Draining []plan.Endpoint
}

// exists reports whether there is to be a virtual server. Nil is one that nobody wants.
func (v *VirtualServer) exists() bool { return v != nil && len(v.Endpoints) > 0 }

// weight is that of an endpoint, 0 if it gets no connections.
func (v *VirtualServer) weight(a netip.AddrPort) uint32 {
	if i, ok := find(v.Endpoints, a); ok {
		return uint32(v.Endpoints[i].Weight)
	}
	return 0
}

// drains reports whether an endpoint keeps the connections that it has, whatever they are.
func (v *VirtualServer) drains(a netip.AddrPort) bool {
	if v == nil {
		return false
	}
	_, ok := find(v.Draining, a)
	return ok
}

// find looks for an endpoint in a list of the plan, which is sorted by address.
func find(list []plan.Endpoint, a netip.AddrPort) (int, bool) {
	return slices.BinarySearchFunc(list, a, func(e plan.Endpoint, a netip.AddrPort) int { return e.AddrPort.Compare(a) })
}
