package nftables

import (
	"maps"
	"slices"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// frame is what the kernel's table has besides elements: sets, chains, and the hashes by which rules of ours are known.
type frame struct {
	exists bool
	// dormant is set if the kernel enters none of the chains.
	dormant bool
	sets    map[string]wire.Set
	chains  map[string]*haveChain
}

// haveChain is a chain and the hashes of its rules, 0 for one that is not of ours.
type haveChain struct {
	base   *nft.Base
	policy uint32
	rules  []uint64
}

func newFrame() *frame {
	return &frame{sets: map[string]wire.Set{}, chains: map[string]*haveChain{}}
}

// addTable takes in a table; those of others are passed over.
func (f *frame) addTable(t wire.Table) {
	if t.Name == tableName {
		f.exists, f.dormant = true, t.Dormant
	}
}

func (f *frame) addSet(s wire.Set) {
	if !s.Anonymous() { // else it goes with its rule
		f.sets[s.Name] = s
	}
}

// addChain takes in a chain of our table; those of others are passed over.
func (f *frame) addChain(c wire.Chain) {
	if c.Table == tableName {
		f.chains[c.Name] = &haveChain{base: c.Base, policy: c.Policy}
	}
}

func (f *frame) addRule(r wire.Rule) {
	if c := f.chains[r.Chain]; c != nil {
		c.rules = append(c.rules, r.Hash)
	}
}

func (f *frame) forgetRules() {
	for _, c := range f.chains {
		c.rules = nil
	}
}

// is reports whether it is what AddChain and AddRule make of a chain.
func (h *haveChain) is(c *nft.Chain) bool {
	if h == nil || !h.hooked(c) {
		return false
	}
	return slices.EqualFunc(h.rules, c.Rules, func(hash uint64, r nft.Rule) bool { return hash == wire.Hash(&r) })
}

// hooked reports whether packets come to it as they are to come to a chain.
func (h *haveChain) hooked(c *nft.Chain) bool {
	const accept = 1
	if c.Base == nil {
		return h.base == nil
	}
	return h.base != nil && *h.base == *c.Base && h.policy == accept
}

// compareFrame collects the chains of lists that differ, which a delta can write, and tells what else differs: then the
// table must be made anew.
func (d *delta) compareFrame(c *contents, have *frame) (broken []string) {
	if have.dormant {
		broken = append(broken, "flags of table inet "+tableName)
	}
	wanted := map[string]bool{}
	for def := range c.sets {
		wanted[def.Name] = true
		if s, ok := have.sets[def.Name]; !ok || !s.Is(def) {
			broken = append(broken, "set "+def.Name)
		}
	}
	for name := range have.sets {
		if !wanted[name] {
			broken = append(broken, "set "+name)
		}
	}
	clear(wanted)
	for ch := range c.chains {
		wanted[ch.Name] = true
		switch have := have.chains[ch.Name]; {
		case have.is(ch):
		case ofLists(ch.Name) && have == nil:
			d.newChains = append(d.newChains, *ch)
		case ofLists(ch.Name) && have.base == nil:
			d.chains = append(d.chains, *ch)
		case have == nil:
			broken = append(broken, "chain "+ch.Name)
		default:
			broken = append(broken, "rules of chain "+ch.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have.chains)) {
		switch {
		case wanted[name]:
		case ofLists(name), isLater(name): // that of a process which was killed while it made the table anew
			d.lastChains = append(d.lastChains, name)
		default:
			broken = append(broken, "chain "+name)
		}
	}
	return broken
}

// ofLists reports whether a chain is one that elements lead to and no rule: such come and go with lists.
func ofLists(chain string) bool {
	_, ok := bucketOf(chain)
	return ok || isTurnsChain(chain)
}

// frameNames are the chains that compareFrame collected.
func (d *delta) frameNames() (names []string) {
	for _, c := range slices.Concat(d.newChains, d.chains) {
		names = append(names, "rules of chain "+c.Name)
	}
	for _, name := range d.lastChains {
		names = append(names, "chain "+name)
	}
	return names
}
