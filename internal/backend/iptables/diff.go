package iptables

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// desired is what one family's tables shall hold.
type desired struct {
	chains contents // ours alone, in full
	// firewall are the rules that KUBE-FIREWALL must have among others', empty if it need not be there.
	firewall string
}

// delta is what must be done to a family's tables.
type delta [len(tables)]tableDelta

type tableDelta struct {
	create []string // chains that others use too and nobody has made
	write  []chain  // chains of ours whose text differs or that are not there
	empty  []string // chains of ours that nobody wants, but somebody else's rule leads to
	remove []string // chains of ours that nobody wants
	edits  []edit   // of the rules in chains that are not ours
}

// edit changes one rule of a chain that is not ours.
type edit struct {
	// place is where the rule is put, from 1; 0: at the end; deletion: it is taken away.
	place int
	// jump is the rule, as spelled where it is, or is to be.
	jump
}

const deletion = -1

// size is the number of objects that differ.
func (d delta) size() (n int) {
	for _, t := range d {
		n += len(t.create) + len(t.write) + len(t.empty) + len(t.remove) + len(t.edits)
	}
	return n
}

// diff finds what makes have into want. What is not ours is left alone.
func diff(want desired, have contents) (d delta) {
	for _, t := range tables {
		d[t].write = differing(want.chains[t], have[t])
		d[t].edits = repairJumps(t, have[t])
		d[t].stale(t, want.chains[t], have[t])
	}
	if want.firewall != "" {
		d[Filter].firewall(want.firewall, have[Filter])
	}
	return d
}

// differing are the chains to write, in an order that is stable but not sorted: the kernel keeps chains in the order
// in which they were made, and the nft variant's programs sort what they read by an algorithm that is quadratic on a
// list already sorted (iptables 1.8.9: 65,000 chains take a minute rather than seconds). Ends of names are hashes.
func differing(want, have map[string]string) (cs []chain) {
	for name, text := range want {
		if was, ok := have[name]; !ok || !sameText(text, was) {
			cs = append(cs, chain{name, text})
		}
	}
	end := func(c chain) string { return c.name[max(0, len(c.name)-8):] }
	slices.SortFunc(cs, func(a, b chain) int {
		return cmp.Or(strings.Compare(end(a), end(b)), strings.Compare(a.name, b.name))
	})
	return cs
}

// stale finds the chains that are ours and that nobody wants. One that a foreign rule leads to cannot be removed:
// the kernel would refuse everything.
func (d *tableDelta) stale(t Table, want, have map[string]string) {
	var stale []string
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, wanted := want[name]; !wanted && own(t, name) {
			stale = append(stale, name)
		}
	}
	if len(stale) == 0 {
		return
	}
	held := heldByOthers(t, have, d.edits)
	for _, name := range stale {
		switch {
		case !held[name]:
			d.remove = append(d.remove, name)
		case have[name] != "":
			d.empty = append(d.empty, name)
		}
	}
}

// heldByOthers are the chains of ours that rules in chains not ours lead to, save those rules that edits take away.
func heldByOthers(t Table, have map[string]string, edits []edit) map[string]bool {
	goes := func(from, line string) bool {
		return slices.Contains(edits, edit{deletion, jump{t, from, line}})
	}
	held := map[string]bool{}
	for name, text := range have {
		if own(t, name) {
			continue
		}
		for _, l := range lines(text) {
			if to := targetOf(l); own(t, to) && !goes(name, l) {
				held[to] = true
			}
		}
	}
	return held
}

// firewall ensures our rule in KUBE-FIREWALL, and the jumps to it, ahead of all that is there.
func (d *tableDelta) firewall(want string, have map[string]string) {
	text, exists := have[chainFirewall]
	if !exists {
		d.create = append(d.create, chainFirewall)
	}
	for _, w := range lines(want) {
		if !slices.ContainsFunc(lines(text), func(l string) bool { return sameLine(l, w) }) {
			d.edits = append(d.edits, edit{jump: jump{Filter, chainFirewall, w}})
		}
	}
	for _, j := range firewallJumps {
		if !slices.ContainsFunc(lines(have[j.from]), j.is) {
			d.edits = append(d.edits, edit{1, j})
		}
	}
}
