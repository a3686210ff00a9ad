package plan

import "slices"

// Mapped is p with other Ports: f makes one of each, and leaves out those that it returns nil for. A backend that sends
// connections through something of its own gives the mapped Plan to another backend.
//
// All else is p's, and shared with it: the node, and who answers at which frontend. So a change of p has to be followed,
// see [Plan.Follow].
func (p *Plan) Mapped(f func(*Port) *Port) *Plan {
	m := &Plan{Ports: make(map[PortID]*Port, len(p.Ports))}
	m.share(p)
	for id, port := range p.Ports {
		m.put(id, f(port))
	}
	return m
}

// Follow brings p, which is of.Mapped, up to date with of: ids are the Service ports of it that changed, or that f makes
// something else of than before; node says whether its node changed. It costs what ids do.
func (p *Plan) Follow(of *Plan, node bool, ids []PortID, f func(*Port) *Port) Changes {
	p.share(of)
	ids = slices.Clone(ids)
	slices.SortFunc(ids, PortID.Compare)
	c := Changes{Node: node}
	for _, id := range slices.Compact(ids) {
		var now *Port
		if port := of.Ports[id]; port != nil {
			now = f(port)
		}
		if change, different := p.put(id, now); different {
			c.Ports = append(c.Ports, change)
		}
	}
	return c
}

// IDs are those of the Service ports that changed, sorted.
func (c Changes) IDs() []PortID {
	ids := make([]PortID, len(c.Ports))
	for i := range c.Ports {
		ids[i] = c.Ports[i].ID
	}
	return ids
}

// share takes over what is not a matter of Ports.
func (p *Plan) share(of *Plan) { p.Node, p.claims, p.known = of.Node, of.claims, of.known }

// put replaces a Service port, nil for none, and tells whether it is another one than before.
func (p *Plan) put(id PortID, now *Port) (c Change, different bool) {
	old := p.Ports[id]
	switch {
	case old == nil && now == nil || old != nil && now != nil && old.equal(now):
		return Change{}, false
	case now == nil:
		delete(p.Ports, id)
		p.count[id.Family]--
	case old == nil:
		p.count[id.Family]++
		fallthrough
	default:
		p.Ports[id] = now
	}
	return Change{id, old, now}, true
}
