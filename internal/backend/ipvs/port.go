package ipvs

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// port is a Service port compiled.
type port struct {
	plan *plan.Port
	// servers are those at addresses of its own, nodePorts those at the node's, and marked the one of its mark, or nil.
	servers, nodePorts []*VirtualServer
	marked             *VirtualServer
}

// compilePort makes the virtual servers of a Service port. Without a mark there is none for clients outside.
func compilePort(p *plan.Port, opts *Options, n *node, mark uint32) *port {
	out := &port{plan: p}
	m := maker{p, opts}
	for _, f := range p.Frontends {
		list := insideList(p.Access(f.Kind))
		if f.Kind != plan.NodePort {
			out.servers = append(out.servers, m.make(Server{Key: f.Key}, list))
			continue
		}
		for _, a := range n.nodePorts[p.ID.Family] {
			at := Server{Key: plan.Key{Addr: a, Protocol: f.Protocol, Port: f.Port}}
			out.nodePorts = append(out.nodePorts, m.make(at, list))
		}
	}
	if outside := p.External[plan.ClientOutside]; mark != 0 && outside.Action == plan.Forward {
		out.marked = m.make(markServer(p.ID.Family, mark), outside.List)
	}
	return out
}

// insideList is the list that the virtual server at an address has: that of pods, which is that of this node's own
// processes as well. Clients outside whose list is another come by a mark.
func insideList(a plan.Access) plan.List {
	for _, client := range []plan.Client{plan.ClientPod, plan.ClientHost, plan.ClientOutside} {
		if a[client].Action == plan.Forward {
			return a[client].List
		}
	}
	return plan.ListNone
}

func markServer(f model.Family, mark uint32) Server {
	return Server{Key: plan.Key{Addr: f.Unspecified()}, Mark: mark}
}

// maker makes the virtual servers of one Service port.
type maker struct {
	port *plan.Port
	opts *Options
}

func (m maker) make(at Server, l plan.List) *VirtualServer {
	v := &VirtualServer{Server: at, Port: m.port.ID, Endpoints: m.port.Endpoints(l), Draining: m.port.Draining}
	if v.exists() {
		v.Schedulings = m.opts.schedulings(m.port, at, v.Endpoints)
	}
	return v
}

// mark is that of clients outside, 0 if they come by none.
func (p *port) mark() uint32 {
	if p.marked == nil {
		return 0
	}
	return p.marked.Mark
}

func (p *port) hasNodePort() bool {
	return slices.ContainsFunc(p.plan.Frontends, func(f plan.Frontend) bool { return f.Kind == plan.NodePort })
}

// all calls f with each virtual server.
func (p *port) all(f func(v *VirtualServer, ofNode bool)) {
	if p == nil {
		return
	}
	for _, v := range p.servers {
		f(v, false)
	}
	for _, v := range p.nodePorts {
		f(v, true)
	}
	if p.marked != nil {
		f(p.marked, false)
	}
}

// addresses calls f with the address of each frontend that has one of its own.
func (p *port) addresses(f func(netip.Addr)) {
	if p == nil {
		return
	}
	for _, v := range p.servers {
		f(v.Addr)
	}
}
