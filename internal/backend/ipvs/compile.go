package ipvs

import (
	"net/netip"
	"slices"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// Ruleset is a compiled Plan: the virtual servers, the addresses of the device, and the rules beside them. [Compile] makes
// it and Update keeps it. Who writes it compares those servers and addresses with the kernel's that are dirty.
type Ruleset struct {
	opts  Options
	rules inner
	node  *node
	ports map[plan.PortID]*port
	// places are all that anybody wants to have a virtual server at.
	places map[Server]place
	// marked are the Service ports that have a virtual server of a mark.
	marked map[plan.PortID]struct{}
	// omitted are those that the plan has, and that have no virtual servers because there are no rules for them.
	omitted map[plan.PortID]bool
	// claims counts the frontends at each address.
	claims map[netip.Addr]int

	dirty dirt
}

// place is who wants the same virtual server. Who has the address comes before node ports, also if he refuses there.
type place struct{ own, nodePort *VirtualServer }

func (p place) winner() *VirtualServer {
	if p.own != nil {
		return p.own
	}
	return p.nodePort
}

// dirt is what changed in a Ruleset since it was last written.
type dirt struct {
	// all is set if everything is to be compared.
	all     bool
	servers map[Server]struct{}
	addrs   map[netip.Addr]struct{}
}

func newDirt(all bool) dirt {
	return dirt{all, map[Server]struct{}{}, map[netip.Addr]struct{}{}}
}

// Compile compiles a whole Plan. The rules beside the virtual servers are rules', which may be nil where nobody asks for
// them.
func Compile(p *plan.Plan, opts Options, rules backend.Backend) *Ruleset {
	if opts.Scheduler == "" {
		opts.Scheduler = roundRobin
	}
	r := &Ruleset{
		opts: opts, rules: newInner(p, rules), node: newNode(&p.Node),
		ports: make(map[plan.PortID]*port, len(p.Ports)), places: make(map[Server]place, len(p.Ports)),
		marked: map[plan.PortID]struct{}{}, claims: map[netip.Addr]int{}, dirty: newDirt(true),
	}
	r.omitted = r.rules.omitted()
	for id, port := range p.Ports {
		r.replace(id, port)
	}
	return r
}

// Update brings the Ruleset up to date with p after changes.
func (r *Ruleset) Update(p *plan.Plan, changes plan.Changes) {
	r.rules.update(p, changes)
	r.omit()
	for _, c := range changes.Ports {
		r.replace(c.ID, c.New)
	}
	if changes.Node {
		r.setNode(newNode(&p.Node))
	}
	r.remark()
}

// setNode moves node ports to other addresses of the node, if those changed that answer them, and looks again whether the
// device is to have addresses that came or went. Others come and go with every pod: every interface has one of IPv6.
func (r *Ruleset) setNode(n *node) {
	old := r.node
	r.node = n
	for id, p := range r.ports {
		if f := id.Family; !slices.Equal(n.nodePorts[f], old.nodePorts[f]) && p.hasNodePort() {
			r.replace(id, p.plan)
		}
	}
	for _, a := range n.movedFrom(old) {
		if r.claims[a] > 0 {
			r.dirty.addrs[a] = struct{}{}
		}
	}
}

// remark looks which Service ports have other marks than before. They may change only of ports that have one, or that
// were compiled just now.
func (r *Ruleset) remark() {
	for id := range r.marked {
		if p := r.ports[id]; p.mark() != r.rules.mark(id) {
			r.replace(id, p.plan)
		}
	}
}

// omit looks which Service ports have no rules, or have some again.
func (r *Ruleset) omit() {
	old := r.omitted
	r.omitted = r.rules.omitted()
	for _, two := range [...][2]map[plan.PortID]bool{{r.omitted, old}, {old, r.omitted}} {
		for id := range two[0] {
			if !two[1][id] {
				r.replace(id, r.rules.plan.Ports[id])
			}
		}
	}
}

// replace compiles a Service port and puts it in the place of the old one. A nil plan takes it away.
func (r *Ruleset) replace(id plan.PortID, p *plan.Port) {
	old := r.ports[id]
	var now *port
	if p != nil && !r.omitted[id] && !(r.opts.NoIPv6 && id.Family == model.IPv6) {
		now = compilePort(p, &r.opts, r.node, r.rules.mark(id))
	}
	old.all(func(v *VirtualServer, ofNode bool) { r.vacate(v, ofNode) })
	now.all(func(v *VirtualServer, ofNode bool) { r.take(v, ofNode) })
	now.addresses(func(a netip.Addr) { r.claim(a, 1) })
	old.addresses(func(a netip.Addr) { r.claim(a, -1) })
	r.note(id, now)
}

// note enters a compiled Service port, nil for none.
func (r *Ruleset) note(id plan.PortID, now *port) {
	if now == nil {
		delete(r.ports, id)
		delete(r.marked, id)
		return
	}
	r.ports[id] = now
	if hasMark(now.plan) {
		r.marked[id] = struct{}{}
	} else {
		delete(r.marked, id)
	}
}

// hasMark reports whether clients outside may come by a mark.
func hasMark(p *plan.Port) bool {
	_, apart := p.OutsideList()
	return apart
}

// take enters a wish for a virtual server.
func (r *Ruleset) take(v *VirtualServer, ofNode bool) {
	at := r.places[v.Server]
	if ofNode {
		at.nodePort = v
	} else {
		at.own = v
	}
	r.places[v.Server] = at
	r.touch(v.Server)
}

// vacate takes a wish back, unless another Service port has taken the place meanwhile.
func (r *Ruleset) vacate(v *VirtualServer, ofNode bool) {
	at := r.places[v.Server]
	switch {
	case ofNode && at.nodePort == v:
		at.nodePort = nil
	case !ofNode && at.own == v:
		at.own = nil
	}
	r.places[v.Server] = at
	if at == (place{}) {
		delete(r.places, v.Server)
	}
	r.touch(v.Server)
}

func (r *Ruleset) touch(s Server) {
	if !r.dirty.all {
		r.dirty.servers[s] = struct{}{}
	}
}

// claim counts a frontend's address in or out.
func (r *Ruleset) claim(a netip.Addr, by int) {
	if r.claims[a] += by; r.claims[a] == 0 {
		delete(r.claims, a)
	}
	if !r.dirty.all {
		r.dirty.addrs[a] = struct{}{}
	}
}

// server is the virtual server that is wanted, or nil.
func (r *Ruleset) server(s Server) *VirtualServer {
	if v := r.places[s].winner(); v.exists() {
		return v
	}
	return nil
}

// binds reports whether the device is to have an address.
func (r *Ruleset) binds(a netip.Addr) bool { return r.claims[a] > 0 && r.node.binds(a) }

// takeDirty is what changed since the last call.
func (r *Ruleset) takeDirty() dirt {
	d := r.dirty
	r.dirty = newDirt(false)
	return d
}

// markDirty gives back what was taken and could not be written.
func (r *Ruleset) markDirty(d dirt) {
	r.dirty.all = r.dirty.all || d.all
	for s := range d.servers {
		r.dirty.servers[s] = struct{}{}
	}
	for a := range d.addrs {
		r.dirty.addrs[a] = struct{}{}
	}
}
