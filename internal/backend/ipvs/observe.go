package ipvs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"sluice/internal/kernel/conntrack"
	"sluice/internal/kernel/ipvs"
	"sluice/internal/kernel/link"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// Servers are the virtual servers of one network namespace, as an [ipvs.Handle] has them.
type Servers interface {
	Servers() ([]ipvs.FoundServer, error)
	Add(ipvs.Server) error
	Set(ipvs.Server) error
	Delete(ipvs.Name) error
	Destinations(ipvs.Name) ([]ipvs.FoundDestination, error)
	AddDestination(ipvs.Name, ipvs.Destination) error
	SetDestination(ipvs.Name, ipvs.Destination) error
	DeleteDestination(ipvs.Name, ipvs.Destination) error
	SetTimeouts(ipvs.Timeouts) error
	TryScheduler(name string) error
	Close() error
}

// Device reaches interfaces of the same namespace, as a [link.Handle] does.
type Device interface {
	AddDummy(name string) error
	AddressesOf(name string) ([]netip.Prefix, error)
	AddMuteAddress(name string, prefix netip.Prefix) error
	DeleteAddress(name string, prefix netip.Prefix) error
	Delete(name string) error
	AddStandIn(addr, source netip.Addr) error
	StandIns() ([]netip.Addr, error)
	DeleteStandIn(netip.Addr) error
	SourceTo(netip.Addr) (netip.Addr, error)
	Close()
}

// openServers is how a Backend reaches virtual servers unless told otherwise.
func openServers() (Servers, error) {
	h, err := ipvs.Open()
	if err != nil {
		return nil, err
	}
	return h, nil
}

// openDevice is how a Backend reaches interfaces unless told otherwise.
func openDevice() (Device, error) {
	h, err := link.Here()
	if err != nil {
		return nil, err
	}
	return h, nil
}

// sourcesOfConnections are the addresses that connections of this thread's network namespace were begun from.
func sourcesOfConnections() (addrs map[netip.Addr]bool, err error) {
	conn, err := conntrack.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return conn.Sources()
}

// observe reads everything that the kernel has.
func (b *Backend) observe(ctx context.Context) (*state, error) {
	s := newState()
	if err := b.observeDevice(s); err != nil {
		return nil, err
	}
	all, err := b.servers.Servers()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read destinations of virtual servers: %w", err)
		}
		h := heldOf(&all[i])
		if h.destinations, err = b.destinations(all[i].Name); err != nil {
			return nil, err
		}
		s.put(serverOf(all[i].Name), h)
	}
	s.claim(b.opts.ExcludeCIDRs, !b.begun)
	return s, nil
}

func (b *Backend) observeDevice(s *state) error {
	routes, err := b.device.StandIns()
	if err != nil {
		return err
	}
	for _, a := range routes {
		s.standIns[a] = struct{}{}
	}
	prefixes, err := b.device.AddressesOf(DeviceName)
	if errors.Is(err, link.ErrNotFound) {
		return nil
	}
	s.device = err == nil
	for _, p := range prefixes {
		// An interface that is up has a link-local address by itself, which is nobody's.
		if p.IsSingleIP() && !p.Addr().IsLinkLocalUnicast() {
			s.addrs[p.Addr()] = struct{}{}
		}
	}
	return err
}

func (b *Backend) destinations(of ipvs.Name) (map[netip.AddrPort]destination, error) {
	all, err := b.servers.Destinations(of)
	if err != nil {
		return nil, err
	}
	m := make(map[netip.AddrPort]destination, len(all))
	for _, d := range all {
		m[d.AddrPort] = destination{d.Weight, d.Active+d.Inactive > 0, d.Elsewise, traffic{d.Received, d.Sent}}
	}
	return m, nil
}

// counts reads how many connections each virtual server was sent.
func counts(s Servers) (map[Server]uint64, error) {
	all, err := s.Servers()
	if err != nil {
		return nil, err
	}
	m := make(map[Server]uint64, len(all))
	for i := range all {
		m[serverOf(all[i].Name)] = all[i].Connections
	}
	return m, nil
}

func heldOf(f *ipvs.FoundServer) *held {
	flags := Flags(f.Flags)
	return &held{
		Scheduling: Scheduling{f.Scheduler, flags &^ signature, f.Persistence},
		signed:     flags&signature == signature,
		grouped:    f.Grouped,
	}
}

var protocols = map[model.Protocol]ipvs.Protocol{model.TCP: ipvs.TCP, model.UDP: ipvs.UDP, model.SCTP: ipvs.SCTP}

func serverOf(n ipvs.Name) Server {
	if n.Mark != 0 {
		return markServer(model.FamilyOf(n.Addr), n.Mark)
	}
	key := plan.Key{Addr: n.Addr, Port: n.Port}
	for p, number := range protocols {
		if number == n.Protocol {
			key.Protocol = p
		}
	}
	return Server{Key: key}
}

func nameOf(s Server) ipvs.Name {
	if s.Mark != 0 {
		return ipvs.Name{Addr: s.Addr, Mark: s.Mark}
	}
	return ipvs.Name{Addr: s.Addr, Protocol: protocols[s.Protocol], Port: s.Port}
}

// signedServer is what the kernel is told of a virtual server of ours.
func signedServer(s Server, how Scheduling) ipvs.Server {
	return ipvs.Server{
		Name: nameOf(s), Scheduler: how.Scheduler, Flags: ipvs.Flags(how.Flags | signature), Persistence: how.Persistence,
	}
}

func destinationOf(a netip.AddrPort, weight uint32) ipvs.Destination {
	return ipvs.Destination{AddrPort: a, Weight: weight}
}

// isGone reports whether an interface is missing.
func isGone(err error) bool { return errors.Is(err, link.ErrNotFound) }

var noTimeouts = ipvs.Timeouts{}

// timeoutsOf are those that are to be set.
func timeoutsOf(o *Options) ipvs.Timeouts {
	return ipvs.Timeouts{TCP: o.TCPTimeout, TCPFin: o.TCPFinTimeout, UDP: o.UDPTimeout}
}
