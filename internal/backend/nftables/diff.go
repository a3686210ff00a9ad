package nftables

import (
	"slices"

	"sluice/internal/nft"
	"sluice/internal/plan"
)

// delta is what to do to a table. Collect it by calling port, node and buckets with what was written and what is wanted,
// then finish; send newChains as one transaction, then first (chains, then remove, then add) as another, then last as a
// third; then call [references.commit]. A delta that was not sent may be thrown away: nothing else knows of it. It may be used again
// after reset.
type delta struct {
	// newChains are to be made before anything leads there: a packet that was on its way already goes by the rules of
	// before, though it finds the elements of now, and the chain would be empty for it.
	newChains []nft.Chain
	// chains are to be emptied and filled with their rules. Those of before go with the elements of now, too.
	chains []nft.Chain
	// remove and add are elements by set. One that changes is in both.
	remove, add [setCount][]nft.Element
	// last are elements and chains that a packet on its way may still be led to by what it found before.
	last       [setCount][]nft.Element
	lastChains []string

	changed int // how many elements are both removed and added
	shared  []sharedChange

	// most is how many differences compare collects before it gives up, which over tells then; 0: all.
	most int
	over bool
}

// reset empties the delta and keeps its memory.
func (d *delta) reset() {
	d.most, d.over = 0, false
	d.newChains, d.chains, d.lastChains = d.newChains[:0], d.chains[:0], d.lastChains[:0]
	d.shared, d.changed = d.shared[:0], 0
	for s := range setCount {
		d.remove[s], d.add[s], d.last[s] = d.remove[s][:0], d.add[s][:0], d.last[s][:0]
	}
}

// late reports whether there is something for the last transaction.
func (d *delta) late() bool {
	return len(d.lastChains) > 0 || slices.ContainsFunc(d.last[:], func(es []nft.Element) bool { return len(es) > 0 })
}

// size is the number of objects that are added, changed or removed.
func (d *delta) size() int {
	n := len(d.newChains) + len(d.chains) + len(d.lastChains) - d.changed
	for s := range setCount {
		n += len(d.remove[s]) + len(d.add[s]) + len(d.last[s])
	}
	return n
}

// port collects what turns old into now. Either may be nil.
func (d *delta) port(old, now *port) {
	if old == now {
		return
	}
	if old == nil {
		old = noPort
	}
	if now == nil {
		now = noPort
	}
	if !old.sameFrontends(now) {
		d.elements(old.frontends, now.frontends)
	}
	for i := range old.lists {
		d.list(side{&old.lists[i], old}, side{&now.lists[i], now})
	}
	d.share(old, now)
}

// noPort is a port without any element.
var noPort = &port{plan: &plan.Port{}}

// setKey is an element's place in the table.
type setKey struct {
	set setID
	key nft.Value
	end nft.Value
}

// elements collects the difference of two sequences of elements.
func (d *delta) elements(old, now func(func(setID, *nft.Element) bool)) {
	had := map[setKey]nft.Element{}
	for s, e := range old {
		had[setKey{s, e.Key, e.End}] = *e
	}
	for s, e := range now {
		k := setKey{s, e.Key, e.End}
		was, ok := had[k]
		switch {
		case ok && was == *e:
			delete(had, k)
			continue
		case ok:
			d.changed++
		}
		d.add[s] = append(d.add[s], *e)
	}
	for s, e := range old {
		if _, gone := had[setKey{s, e.Key, e.End}]; gone {
			d.remove[s] = append(d.remove[s], *e)
		}
	}
}

// sameFrontends reports whether the frontends' elements are the same for sure.
func (p *port) sameFrontends(q *port) bool {
	a, b := p.plan, q.plan
	return slices.Equal(a.Frontends, b.Frontends) && slices.Equal(p.sources, q.sources) && (a.Sources == nil) == (b.Sources == nil) &&
		p.healthCheck == q.healthCheck &&
		p.routes(plan.ClusterIP) == q.routes(plan.ClusterIP) && p.routes(plan.ExternalIP) == q.routes(plan.ExternalIP)
}

// node collects the elements that depend on the node.
func (d *delta) node(old, now *nodePart) {
	if old != now {
		d.elements(old.elements, now.elements)
	}
}

// buckets collects the chains that lists share and the elements that lead there. A chain that no element leads to any
// more goes last.
func (d *delta) buckets(old, now *bucketTable) {
	for n := range now {
		was, is := old[n], now[n]
		if was == is {
			continue
		}
		if is != (bucket{}) {
			d.newChains = append(d.newChains, is.chain())
			d.add[setBuckets] = append(d.add[setBuckets], leadTo(bucketNumber(n), is.name()))
		}
		if was == (bucket{}) {
			continue
		}
		if gone := leadTo(bucketNumber(n), was.name()); is != (bucket{}) {
			d.remove[setBuckets] = append(d.remove[setBuckets], gone)
			d.changed++
		} else {
			d.last[setBuckets] = append(d.last[setBuckets], gone)
		}
		if !slices.Contains(now[:], was) {
			d.lastChains = append(d.lastChains, was.name())
		}
	}
}

// finish turns the changes of shared elements into elements, by the ports in the kernel that have them now. It does not
// change refs.
func (d *delta) finish(refs references) {
	slices.SortStableFunc(d.shared, func(a, b sharedChange) int { return a.compare(b.sharedKey) })
	for rest := d.shared; len(rest) > 0; {
		first, by, n := rest[0], int32(0), 0
		for n < len(rest) && rest[n].sharedKey == first.sharedKey {
			by += rest[n].by
			n++
		}
		rest = rest[n:]
		had, has := refs[first.sharedKey] > 0, refs[first.sharedKey]+by > 0
		switch e := first.element(first.of); {
		case had && !has:
			d.remove[first.set] = append(d.remove[first.set], e)
		case has && !had:
			d.add[first.set] = append(d.add[first.set], e)
		}
	}
}
