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
	// adopted is set once the numbers of the kernel's table were taken on: then marks stay, whatever it has later.
	adopted bool
	// addresses are the node's own, for Trace alone.
	addresses []netip.Addr

	structure structure
	node      *nodePart
	ports     map[plan.PortID]*port
	// inOrder are the ports by ID while all are as they were first compiled; nil: sort them.
	inOrder []*port
	sizes   sizes
	stocks

	// problems are the ports that are left out, and why.
	problems map[plan.PortID]error

	dirty dirt
}

// dirt is what changed in a Ruleset since somebody last took it.
type dirt struct {
	// ports need not be told of where all of the table is to be made anew.
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
		inOrder: make([]*port, 0, len(p.Ports)),
		stocks:  newStocks(opts, bucketTable{}), problems: map[plan.PortID]error{},
		dirty: dirt{ports: map[plan.PortID]struct{}{}, table: true},
	}
	r.setNode(&p.Node)
	for _, port := range p.Sorted() {
		r.put(port.ID, port, [2]list{})
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
	s := newStructure(n, r.opts)
	if s.routed = r.structure.routed; s != r.structure {
		r.structure, r.dirty.table = s, true
	}
	r.node, r.dirty.node = newNodePart(n, &r.structure), true
}

// replace compiles a Service port and puts it in the place of the old one. A nil plan takes it away.
func (r *Ruleset) replace(id plan.PortID, p *plan.Port) {
	r.inOrder = nil
	old := r.ports[id]
	if old == nil {
		r.put(id, p, [2]list{})
		return
	}
	delete(r.ports, id)
	old.tally(&r.sizes.count, -1)
	r.put(id, p, old.lists)
	r.release(old, r.ports[id])
}

// put compiles a Service port, with the numbers that it had, and enters it.
func (r *Ruleset) put(id plan.PortID, p *plan.Port, had [2]list) {
	if !r.dirty.table {
		r.dirty.ports[id] = struct{}{}
	}
	delete(r.problems, id)
	if p == nil {
		return
	}
	now, err := r.compilePort(p, had)
	if err != nil {
		r.problems[id] = err
		return
	}
	r.ports[id] = now
	now.tally(&r.sizes.count, 1)
	if r.inOrder != nil {
		r.inOrder = append(r.inOrder, now)
	}
}

// settle does what remains when all ports are compiled: those that were left out may have room now.
func (r *Ruleset) settle(p *plan.Plan) {
	for _, id := range slices.SortedFunc(maps.Keys(r.problems), plan.PortID.Compare) {
		r.replace(id, p.Ports[id])
	}
	r.dirty.table = r.grow() || r.dirty.table
}

// grow makes room in the sets, and reports whether any had to change. It is the time to make chains that are wanted
// sooner or later where there are many endpoints, because the table is made anew.
func (r *Ruleset) grow() (grown bool) {
	grown = r.sizes.grow()
	if r.sizes.large() && !r.structure.ipvs {
		r.buckets.stand()
	}
	return grown
}

// collect forgets chains that no list is balanced by any more, if there are many. The kernel may have ports as they were
// and not as they are wanted, which need the chains still: call it only when there are none such.
func (r *Ruleset) collect() { r.buckets.collect() }

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
