package ipsets

import (
	"slices"

	"sluice/internal/iptables/rules"
)

// delta is what must be done to one family's tables, by the table's name.
type delta map[string]*tableDelta

type tableDelta struct {
	write  []*rules.Chain // chains of ours whose rules differ or that are not there
	empty  []string       // chains that nobody wants, but somebody else's rule leads to
	remove []string       // chains that nobody wants
	edits  []edit         // of the rules in chains of the kernel
}

// edit changes one rule of a chain of the kernel.
type edit struct {
	from string
	// place is where the rule is put, from 1; deletion: it is taken away.
	place int
	rule  rules.Rule
}

const deletion = -1

// size is the number of objects that differ.
func (d delta) size() (n int) {
	for _, t := range d {
		n += len(t.write) + len(t.empty) + len(t.remove) + len(t.edits)
	}
	return n
}

// diff finds what makes have into want. Chains of mode iptables go, in the same step that takes the jumps to them.
func diff(want, have *rules.Ruleset) delta {
	d := delta{}
	for _, name := range tableNames {
		t := &tableDelta{}
		d[name] = t
		for _, chain := range ownChains[name] {
			if w := want.Table(name).Chain(chain); !sameRules(w, have.Table(name).Chain(chain)) {
				t.write = append(t.write, w)
			}
		}
		for _, from := range kernelChains {
			t.edits = append(t.edits, repair(name, from, have.Table(name).Chain(from))...)
		}
		t.stale(name, have, func(chain string) bool { return isOf(foreignChains, name, chain) })
	}
	return d
}

// sameRules reports whether two chains have the same rules, whatever version of iptables printed them.
func sameRules(a, b *rules.Chain) bool {
	return a != nil && b != nil && slices.EqualFunc(a.Rules, b.Rules, rules.Equal)
}

// targetOf is where a rule leads; empty if nowhere.
func targetOf(r rules.Rule) string {
	p, err := r.Parse()
	if err != nil {
		return ""
	}
	return p.Target
}

// repair puts each of our jumps into a chain of the kernel once, in order, and takes away those of mode iptables. Where they
// are not, all are put where the first of them was, so that they keep their place among foreign rules.
func repair(table, from string, have *rules.Chain) (edits []edit) {
	want := jumpsFrom(table, from)
	var found []rules.Rule
	first := 0 // where the first is, from 0
	for at, r := range rulesOf(have) {
		if to := targetOf(r); !isOf(ownChains, table, to) && !isOf(foreignChains, table, to) {
			continue
		}
		if len(found) == 0 {
			first = at
		}
		found = append(found, r)
		edits = append(edits, edit{from, deletion, r})
	}
	if slices.EqualFunc(found, want, rules.Equal) {
		return nil
	}
	for i, r := range want {
		edits = append(edits, edit{from, first + i + 1, r})
	}
	return edits
}

func rulesOf(c *rules.Chain) []rules.Rule {
	if c == nil {
		return nil
	}
	return c.Rules
}

// stale finds the chains that go. One that a rule leads to that stays cannot be removed: the kernel would refuse
// everything.
func (t *tableDelta) stale(table string, have *rules.Ruleset, goes func(chain string) bool) {
	if have.Table(table) == nil {
		return
	}
	held := t.held(have.Table(table), goes)
	for _, c := range have.Table(table).Chains {
		switch {
		case !goes(c.Name):
		case !held[c.Name]:
			t.remove = append(t.remove, c.Name)
		case len(c.Rules) > 0:
			t.empty = append(t.empty, c.Name)
		}
	}
}

// held are the chains that rules which stay lead to.
func (t *tableDelta) held(have *rules.Table, goes func(chain string) bool) map[string]bool {
	held := map[string]bool{}
	for _, c := range have.Chains {
		if goes(c.Name) || t.writes(c.Name) {
			continue
		}
		for _, r := range c.Rules {
			if !slices.Contains(t.edits, edit{c.Name, deletion, r}) {
				held[targetOf(r)] = true
			}
		}
	}
	return held
}

func (t *tableDelta) writes(chain string) bool {
	return slices.ContainsFunc(t.write, func(c *rules.Chain) bool { return c.Name == chain })
}

// spare has t remove no chain that the kernel does not remove, for a reason that iptables-save does not show.
func (t *tableDelta) spare(held map[string]bool) {
	var remove []string
	for _, chain := range t.remove {
		if held[chain] {
			t.empty = append(t.empty, chain)
		} else {
			remove = append(remove, chain)
		}
	}
	t.remove = remove
}
