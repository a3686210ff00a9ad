package nftables

import (
	"iter"
	"maps"
	"slices"

	"sluice/internal/nft"
	"sluice/internal/plan"
)

// contents is everything that a table has, or is to have: what a rebuild writes. A Ruleset's are those of
// [Ruleset.contents]; a backend that leaves some ports as they are in the kernel has its own.
type contents struct {
	structure structure
	sizes     [setCount]uint32
	node      *nodePart
	buckets   *bucketTable
	ports     []*port // by ID
	// count is at least as many elements as ports have in the sets that have a size.
	count [setCount]int
}

// contents are those that the Ruleset wants.
func (r *Ruleset) contents() *contents {
	return &contents{
		structure: r.structure, sizes: r.sizes.size, node: r.node, buckets: &r.buckets.byNumber,
		ports: r.sorted(), count: r.sizes.count,
	}
}

func (r *Ruleset) sorted() []*port {
	if r.inOrder != nil {
		return r.inOrder
	}
	return sorted(r.ports)
}

func sorted(ports map[plan.PortID]*port) []*port {
	return slices.SortedFunc(maps.Values(ports), func(a, b *port) int { return a.plan.ID.Compare(b.plan.ID) })
}

// sets yields the definitions of all sets, in the order in which nft lists them.
func (c *contents) sets(yield func(*nft.Set) bool) {
	for id := range c.setIDs {
		if def := sized(id, &c.sizes); !yield(&def) {
			return
		}
	}
}

// setIDs yields all sets that there are, in the same order.
func (c *contents) setIDs(yield func(setID) bool) {
	for _, id := range shown {
		if c.structure.has(id) && !yield(id) {
			return
		}
	}
}

// sized is the definition of a set.
func sized(id setID, sizes *[setCount]uint32) nft.Set {
	def := sets[id]
	if sizes[id] != 0 {
		def.Size = sizes[id]
	}
	return def
}

// chains yields all chains in the order in which nft lists them, as a packet comes by them. Those that are made later,
// for new lists, are listed last.
func (c *contents) chains(yield func(*nft.Chain) bool) {
	each := func(chains []nft.Chain) bool {
		for i := range chains {
			if !yield(&chains[i]) {
				return false
			}
		}
		return true
	}
	_ = each(c.structure.natChains()) && c.pickChains(each, yield) && each(c.structure.otherChains())
}

// pickChains yields the chains that pick an endpoint. It reports false if it was told to stop.
func (c *contents) pickChains(each func([]nft.Chain) bool, yield func(*nft.Chain) bool) bool {
	return c.structure.ipvs || c.turnsChains(yield) && each(c.buckets.chains())
}

// turnsChains yields the chains of lists whose endpoints take turns. It reports false if it was told to stop.
func (c *contents) turnsChains(yield func(*nft.Chain) bool) bool {
	for _, p := range c.ports {
		for i := range p.lists {
			if l := &p.lists[i]; l.takesTurns() {
				if ch := p.turnsChain(l); !yield(&ch) {
					return false
				}
			}
		}
	}
	return true
}

// elements yields the elements of one set. One that several ports share comes once, and is counted in refs for each of
// them: so refs begins empty and knows everything when all sets are done. The element is the same one each time.
func (c *contents) elements(set setID, refs references) iter.Seq[*nft.Element] {
	return func(yield func(*nft.Element) bool) {
		only := func(s setID, e *nft.Element) bool { return s != set || yield(e) }
		switch {
		case !c.structure.has(set):
		case set == setBuckets:
			c.buckets.elements(only)
		case isOfNode(set):
			c.node.elements(only)
		case isOfClients(set) || c.empty(set):
		case isShared(set):
			c.sharedElements(set, refs, yield)
		default:
			var e nft.Element
			for _, p := range c.ports {
				if !p.elements(set, &e, yield) {
					return
				}
			}
		}
	}
}

// setPorts has c have other ports.
func (c *contents) setPorts(ports []*port) {
	c.ports, c.count = ports, [setCount]int{}
	for _, p := range c.ports {
		p.tally(&c.count, 1)
	}
}

// empty reports whether it is known without a look at them that no port has elements in a set.
func (c *contents) empty(set setID) bool {
	if minSizes[set] == 0 && set < bothFamilies {
		set = setServices.of(set.family()) // who has none there has none of that family
	}
	return minSizes[set] > 0 && c.count[set] == 0
}

func (c *contents) sharedElements(set setID, refs references, yield func(*nft.Element) bool) {
	var (
		e    nft.Element
		of   *port
		more = true
	)
	take := func(k sharedKey) bool {
		if k.set == set && refs.gain(k) {
			e = k.element(of.plan.ID.Service)
			more = yield(&e)
		}
		return more
	}
	for _, of = range c.ports {
		switch {
		case of.family() != set.family():
		case set.ofIPv4() == setHairpin:
			of.hairpins(take)
		default:
			of.addresses(take)
		}
		if !more {
			return
		}
	}
}
