package nftables

import (
	"maps"
	"net/netip"
	"slices"

	"sluice/internal/plan"
)

// Ruleset is a compiled Plan: what our table is to hold. [Compile] makes it and Update keeps it; who writes it to the
// kernel compares ports with those that it has written (see [delta]), and asks takeDirty which ones are worth comparing.
type Ruleset struct {
	opts Options
	// addresses are the node's own, for Trace alone.
	addresses []netip.Addr

	structure structure
	node      *nodePart
	ports     map[plan.PortID]*port
	sizes     sizes
	stocks

	// problems are the ports that are left out, and why.
	problems map[plan.PortID]error

	dirty dirt
}

// dirt is what changed in a Ruleset since somebody last took it.
type dirt struct {
	ports map[plan.PortID]struct{}
	// node is set if the node's elements may differ.
	node bool
	// table is set if chains, rules or sizes differ, so that the table must be made anew.
	table bool
}

// Compile compiles a whole Plan. All of it is dirty.
func Compile(p *plan.Plan, opts Options) *Ruleset {
	r := &Ruleset{
		opts: opts, structure: newStructure(&p.Node, opts), ports: make(map[plan.PortID]*port, len(p.Ports)),
		stocks: newStocks(), problems: map[plan.PortID]error{},
		dirty: dirt{ports: make(map[plan.PortID]struct{}, len(p.Ports)), table: true},
	}
	r.setNode(&p.Node)
	for _, port := range p.Sorted() {
		r.replace(port.ID, port)
	}
	r.settle(p)
	return r
}

// Update brings the Ruleset up to date with p after changes. What stays keeps its numbers.
func (r *Ruleset) Update(p *plan.Plan, changes plan.Changes) {
	if changes.Node {
		r.setNode(&p.Node)
	}
	for _, c := range changes.Ports {
		r.replace(c.ID, c.New)
	}
	r.settle(p)
}

func (r *Ruleset) setNode(n *plan.Node) {
	r.addresses = n.Addresses
	if s := newStructure(n, r.opts); s != r.structure {
		r.structure, r.dirty.table = s, true
	}
	r.node, r.dirty.node = newNodePart(n), true
}

// replace compiles a Service port and puts it in the place of the old one. A nil plan takes it away.
func (r *Ruleset) replace(id plan.PortID, p *plan.Port) {
	old := r.ports[id]
	now, err := r.compile(p, old)
	r.release(old, now)
	old.tally(&r.sizes.count, -1)
	now.tally(&r.sizes.count, 1)
	r.dirty.ports[id] = struct{}{}
	if r.ports[id] = now; now == nil {
		delete(r.ports, id)
	}
	if r.problems[id] = err; err == nil {
		delete(r.problems, id)
	}
}

func (r *Ruleset) compile(p *plan.Port, old *port) (*port, error) {
	if p == nil {
		return nil, nil
	}
	if old == nil {
		old = &port{}
	}
	return r.compilePort(p, old.lists)
}

// settle does what remains when all ports are compiled: those that were left out may have room now.
func (r *Ruleset) settle(p *plan.Plan) {
	for _, id := range slices.SortedFunc(maps.Keys(r.problems), plan.PortID.Compare) {
		r.replace(id, p.Ports[id])
	}
	r.buckets.collect()
	r.dirty.table = r.sizes.grow() || r.dirty.table
}

// takeDirty is what changed since the last call.
func (r *Ruleset) takeDirty() dirt {
	d := r.dirty
	r.dirty = dirt{ports: map[plan.PortID]struct{}{}}
	return d
}

// markDirty gives back what was taken and could not be written.
func (r *Ruleset) markDirty(d dirt) {
	for id := range d.ports {
		r.dirty.ports[id] = struct{}{}
	}
	r.dirty.node = r.dirty.node || d.node
	r.dirty.table = r.dirty.table || d.table
}
