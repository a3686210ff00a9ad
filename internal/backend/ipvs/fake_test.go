package ipvs

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/netip"
	"slices"
	"syscall"

	"sluice/internal/backend"
	"sluice/internal/kernel/ipvs"
	"sluice/internal/kernel/link"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

// kernel is what a Backend works with, in memory. It refuses what the real one refuses, and like that one it loses the
// connections of a destination that is deleted.
type kernel struct {
	servers map[ipvs.Name]*fakeServer
	// links are interfaces with their addresses.
	links map[string]map[netip.Prefix]bool
	// standIns are sources by address, and speak the addresses that connections were begun from.
	standIns map[netip.Addr]netip.Addr
	speak    map[netip.Addr]bool
	// unreachable are endpoints that no route leads to.
	unreachable map[netip.Addr]bool

	sysctl map[string]string
	times  ipvs.Timeouts
	// lacks are schedulers that are not there.
	lacks []string
	// fault may have a call fail, before it did anything or afterwards.
	fault  func(call string) (before, after error)
	writes int
	// lost are connections that last and were lost.
	lost int
	// isUDP tells which marks are of clients that have no connections.
	isUDP func(mark uint32) bool
}

type fakeServer struct {
	ipvs.Server
	total        uint64
	destinations map[netip.AddrPort]*ipvs.FoundDestination
}

func newKernel() *kernel {
	return &kernel{
		servers: map[ipvs.Name]*fakeServer{}, links: map[string]map[netip.Prefix]bool{"lo": {}},
		standIns: map[netip.Addr]netip.Addr{}, speak: map[netip.Addr]bool{},
		sysctl: map[string]string{"kernel.osrelease": "6.1.0-57-cloud-amd64"},
		fault:  func(string) (error, error) { return nil, nil },
		isUDP:  func(uint32) bool { return false },
	}
}

// write does something, unless it is to fail.
func (k *kernel) write(call string, do func() error) error {
	before, after := k.fault(call)
	if before != nil {
		return before
	}
	if err := do(); err != nil {
		return err
	}
	k.writes++
	return after
}

func (k *kernel) Servers() (all []ipvs.FoundServer, err error) {
	if before, _ := k.fault("list servers"); before != nil {
		return nil, before
	}
	for _, s := range k.servers {
		all = append(all, ipvs.FoundServer{Server: s.Server, Connections: s.total})
	}
	return all, nil
}

func (k *kernel) Add(s ipvs.Server) error {
	return k.write("add server", func() error {
		switch {
		case slices.Contains(k.lacks, s.Scheduler):
			return syscall.ENOENT
		case k.servers[s.Name] != nil:
			return syscall.EEXIST
		}
		k.servers[s.Name] = &fakeServer{Server: s, destinations: map[netip.AddrPort]*ipvs.FoundDestination{}}
		return nil
	})
}

func (k *kernel) Set(s ipvs.Server) error {
	return k.write("set server", func() error {
		switch {
		case k.servers[s.Name] == nil:
			return syscall.ESRCH
		case slices.Contains(k.lacks, s.Scheduler):
			return syscall.ENOENT
		}
		k.servers[s.Name].Server = s
		return nil
	})
}

func (k *kernel) Delete(n ipvs.Name) error {
	return k.write("delete server", func() error {
		s := k.servers[n]
		if s == nil {
			return syscall.ESRCH
		}
		for _, d := range s.destinations {
			k.lose(n, d)
		}
		delete(k.servers, n)
		return nil
	})
}

// lose notes the connections of a destination that goes. UDP has none that last.
func (k *kernel) lose(n ipvs.Name, d *ipvs.FoundDestination) {
	if n.Protocol != ipvs.UDP && !k.isUDP(n.Mark) {
		k.lost += int(d.Active + d.Inactive)
	}
}

func (k *kernel) Destinations(n ipvs.Name) (all []ipvs.FoundDestination, err error) {
	if before, _ := k.fault("list destinations"); before != nil {
		return nil, before
	}
	if s := k.servers[n]; s != nil {
		for _, d := range s.destinations {
			all = append(all, *d)
		}
	}
	return all, nil
}

func (k *kernel) AddDestination(n ipvs.Name, d ipvs.Destination) error {
	return k.write("add destination", func() error {
		switch s := k.servers[n]; {
		case s == nil:
			return syscall.ESRCH
		case s.destinations[d.AddrPort] != nil:
			return syscall.EEXIST
		default:
			s.destinations[d.AddrPort] = &ipvs.FoundDestination{Destination: d}
		}
		return nil
	})
}

func (k *kernel) SetDestination(n ipvs.Name, d ipvs.Destination) error {
	return k.write("set destination", func() error {
		have, err := k.destination(n, d.AddrPort)
		if err == nil {
			have.Destination, have.Elsewise = d, false
		}
		return err
	})
}

func (k *kernel) DeleteDestination(n ipvs.Name, d ipvs.Destination) error {
	return k.write("delete destination", func() error {
		have, err := k.destination(n, d.AddrPort)
		if err == nil {
			k.lose(n, have)
			delete(k.servers[n].destinations, d.AddrPort)
		}
		return err
	})
}

func (k *kernel) destination(n ipvs.Name, a netip.AddrPort) (*ipvs.FoundDestination, error) {
	s := k.servers[n]
	if s == nil {
		return nil, syscall.ESRCH
	}
	if s.destinations[a] == nil {
		return nil, syscall.ENOENT
	}
	return s.destinations[a], nil
}

func (k *kernel) SetTimeouts(t ipvs.Timeouts) error {
	k.times = t
	return nil
}

func (k *kernel) TryScheduler(name string) error {
	if slices.Contains(k.lacks, name) {
		return ipvs.ErrNoScheduler
	}
	return nil
}

func (k *kernel) Get(key string) (string, error) { return k.sysctl[key], nil }

func (k *kernel) Close() error { return nil }

// device is the part of a kernel that has interfaces.
type device struct{ *kernel }

func (d device) AddDummy(name string) error {
	return d.write("add device", func() error {
		if d.links[name] == nil {
			d.links[name] = map[netip.Prefix]bool{}
		}
		return nil
	})
}

func (d device) AddressesOf(name string) ([]netip.Prefix, error) {
	if d.links[name] == nil {
		return nil, link.ErrNotFound
	}
	return slices.Collect(maps.Keys(d.links[name])), nil
}

func (d device) AddMuteAddress(name string, p netip.Prefix) error {
	return d.write("add address", func() error {
		if d.links[name] == nil {
			return link.ErrNotFound
		}
		d.links[name][p] = true
		return nil
	})
}

func (d device) DeleteAddress(name string, p netip.Prefix) error {
	return d.write("delete address", func() error {
		if !d.links[name][p] {
			return syscall.EADDRNOTAVAIL
		}
		delete(d.links[name], p)
		return nil
	})
}

func (d device) Delete(name string) error {
	return d.write("delete device", func() error {
		if d.links[name] == nil {
			return link.ErrNotFound
		}
		delete(d.links, name)
		return nil
	})
}

func (d device) AddStandIn(addr, source netip.Addr) error {
	return d.write("add local route", func() error {
		d.standIns[addr] = source
		return nil
	})
}

func (d device) StandIns() ([]netip.Addr, error) { return slices.Collect(maps.Keys(d.standIns)), nil }

func (d device) DeleteStandIn(addr netip.Addr) error {
	return d.write("delete local route", func() error {
		if !d.standIns[addr].IsValid() {
			return syscall.ESRCH
		}
		delete(d.standIns, addr)
		return nil
	})
}

func (d device) SourceTo(to netip.Addr) (netip.Addr, error) {
	if d.unreachable[to] {
		return netip.Addr{}, syscall.ENETUNREACH
	}
	if to.Is6() {
		return netip.MustParseAddr("fd00:10::11"), nil
	}
	return netip.MustParseAddr("192.168.10.11"), nil
}

func (device) Close() {}

// settings are kernel settings.
type settings struct {
	*kernel
	readOnly []string
}

func (s settings) Set(key, value string) (bool, error) {
	if slices.Contains(s.readOnly, key) {
		return false, errors.New(key + " is read-only")
	}
	changed := s.sysctl[key] != value
	s.sysctl[key] = value
	return changed, nil
}

// firstMark is the first of the rules' marks.
const firstMark = 8193

// rules are an inner mode that writes nothing, and notes what it is told.
type rules struct {
	marks map[plan.PortID]uint32
	// applied is called with what is applied.
	applied func(*ruleset) (backend.Result, error)
	cleaned bool
	// omits are Service ports that there are no rules for.
	omits []plan.PortID
}

func newRules() *rules {
	return &rules{
		marks:   map[plan.PortID]uint32{},
		applied: func(*ruleset) (backend.Result, error) { return backend.Result{}, nil },
	}
}

func (*rules) Name() string { return "rules" }

func (r *rules) Compile(p *plan.Plan) backend.Ruleset {
	out := &ruleset{rules: r, ports: maps.Clone(p.Ports)}
	for _, port := range p.Sorted() {
		out.Mark(port.ID) // in this order
	}
	return out
}

func (r *rules) Apply(_ context.Context, rs backend.Ruleset, _ backend.Request) (backend.Result, error) {
	return r.applied(rs.(*ruleset))
}

func (r *rules) Cleanup(context.Context) error {
	r.cleaned = true
	return nil
}

type ruleset struct {
	*rules
	ports map[plan.PortID]*plan.Port
}

func (r *ruleset) Update(p *plan.Plan, changes plan.Changes) {
	for _, c := range changes.Ports {
		if r.ports[c.ID] = c.New; c.New == nil {
			delete(r.ports, c.ID)
		}
	}
	if !maps.Equal(r.ports, p.Ports) {
		panic("the rules were not told of all changes")
	}
}

func (r *ruleset) Mark(id plan.PortID) (uint32, bool) {
	p := r.ports[id]
	if p == nil || !hasMark(p) {
		return 0, false
	}
	if r.marks[id] == 0 {
		r.marks[id] = firstMark + uint32(len(r.marks))
	}
	return r.marks[id], true
}

func (r *ruleset) Omitted() []plan.PortID { return r.omits }

func (r *ruleset) Render(w io.Writer) error {
	_, err := io.WriteString(w, "table inet sluice {\n}\n")
	return err
}

func (r *ruleset) Trace(plan.Packet) trace.Result { return trace.Result{Verdict: trace.Unhandled} }

func (r *ruleset) TraceBalanced(pkt plan.Packet, pick func(netip.AddrPort, model.Protocol, uint32) ([]plan.Endpoint, bool)) trace.Result {
	endpoints, ok := pick(pkt.To, pkt.Protocol, 0)
	if !ok {
		return trace.Result{Verdict: trace.Unhandled}
	}
	out := trace.Result{Verdict: trace.Forward}
	for _, e := range endpoints {
		out.Endpoints = append(out.Endpoints, trace.Endpoint{Address: e.AddrPort, Probability: 1 / float64(len(endpoints))})
	}
	return out
}
