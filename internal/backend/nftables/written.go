package nftables

import (
	"maps"
	"slices"

	"sluice/internal/plan"
)

// written is what our table holds, as far as is known.
type written struct {
	structure structure
	sizes     [setCount]uint32
	node      *nodePart
	buckets   bucketTable
	ports     map[plan.PortID]*port
	refs      references
}

// writtenAll is a table that holds all of c, whose elements refs has counted.
func writtenAll(c *contents, refs references) *written {
	w := &written{
		structure: c.structure, sizes: c.sizes, node: c.node, buckets: *c.buckets, refs: refs,
		ports: make(map[plan.PortID]*port, len(c.ports)),
	}
	for _, p := range c.ports {
		w.ports[p.plan.ID] = p
	}
	return w
}

// contents are what the table holds.
func (w *written) contents() *contents { return w.contentsOf(sorted(w.ports)) }

// unsorted are contents with the ports in any order: to sort many takes longer than to repair an element.
func (w *written) unsorted() *contents { return w.contentsOf(slices.Collect(maps.Values(w.ports))) }

func (w *written) contentsOf(ports []*port) *contents {
	c := &contents{structure: w.structure, sizes: w.sizes, node: w.node, buckets: &w.buckets}
	c.setPorts(ports)
	return c
}

// collect has d be what makes some ports, and all that is no port's, as r wants them.
func (w *written) collect(d *delta, r *Ruleset, ids []plan.PortID) {
	d.reset()
	for _, id := range ids {
		d.port(w.ports[id], r.ports[id])
	}
	d.node(w.node, r.node)
	d.buckets(&w.buckets, &r.buckets.byNumber)
	d.finish(w.refs)
}

// advance takes in that the kernel took the delta of collect.
func (w *written) advance(d *delta, r *Ruleset, ids []plan.PortID) {
	for _, id := range ids {
		if now := r.ports[id]; now != nil {
			w.ports[id] = now
		} else {
			delete(w.ports, id)
		}
	}
	w.node, w.buckets = r.node, r.buckets.byNumber
	w.refs.commit(d)
}

// wanted is what the table is to hold: what r wants, but for some ports, which stay as they are in the kernel. There may
// be no table.
func (w *written) wanted(r *Ruleset, stay map[plan.PortID]bool) *contents {
	c := r.contents()
	if len(stay) == 0 {
		return c
	}
	ports := maps.Clone(r.ports)
	for id := range stay {
		delete(ports, id)
		if w != nil && w.ports[id] != nil {
			ports[id] = w.ports[id]
		}
	}
	c.setPorts(sorted(ports))
	return c
}

// newReferences has room for the elements that the ports of c share: to grow would cost as much again.
func newReferences(c *contents) references {
	n := 0
	for _, p := range c.ports {
		n += len(p.plan.Frontends) + len(p.lists[0].endpoints)
	}
	return make(references, n)
}
