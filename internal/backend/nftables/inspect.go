package nftables

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sluice/internal/backend"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// Compare tells what a new process would change in the kernel to have it hold what r says, in lines as nft takes them
// after its verbs: "-" is before what would go, "+" before what would come. What differs in numbers alone is no
// difference: r takes on those of the kernel, so it must be one that nobody has applied.
func (b *Backend) Compare(ctx context.Context, r *Ruleset) (lines []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return nil, err
	}
	a := &run{Backend: b, rules: r, result: &backend.Result{}}
	have, err := a.readFrame(ctx)
	if err != nil {
		return nil, err
	}
	read, known := map[setID]*listing{}, map[uint64]nft.Rule{}
	if have == nil {
		have, lines = newFrame(), []string{"+table inet " + tableName}
	} else if err := a.adopt(ctx, have, read); err != nil {
		return nil, err
	} else if known, err = b.knownRules(ctx, r, have); err != nil {
		return nil, err
	}
	c := r.contents()
	lines = append(lines, c.frameLines(have, known)...)
	refs := references{}
	for set := range setCount {
		if isOfClients(set) {
			continue
		}
		var d delta
		if have.has(set) {
			err = a.compareAll(ctx, &d, c, set, refs)
		} else {
			d.compare(c, set, refs, func(func(*nft.Element) bool) {})
		}
		if err != nil {
			return nil, err
		}
		lines = append(lines, d.elementLines(set)...)
	}
	return lines, nil
}

// frameLines are about what is no element.
func (c *contents) frameLines(have *frame, known map[uint64]nft.Rule) (lines []string) {
	if have.dormant {
		lines = append(lines, "-table inet "+tableName+" { flags dormant; }", "+table inet "+tableName)
	}
	line := func(sign, kind, name string) {
		lines = append(lines, fmt.Sprintf("%s%s inet %s %s", sign, kind, tableName, name))
	}
	wanted := map[string]bool{}
	for def := range c.sets {
		wanted[def.Name] = true
		s, ok := have.sets[def.Name]
		if ok && s.Is(def) {
			continue
		}
		if ok {
			line("-", def.Kind(), def.Name)
		}
		line("+", def.Kind(), def.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(have.sets)) {
		if !wanted[name] {
			line("-", "set", name)
		}
	}
	clear(wanted)
	for ch := range c.chains {
		wanted[ch.Name] = true
		lines = append(lines, chainLines(ch, have.chains[ch.Name], known)...)
	}
	for _, name := range slices.Sorted(maps.Keys(have.chains)) {
		if !wanted[name] {
			line("-", "chain", name)
		}
	}
	return lines
}

// chainLines are about a chain; h is nil where there is none. What it has that ch has not is told as far as it is known.
func chainLines(ch *nft.Chain, h *haveChain, known map[uint64]nft.Rule) (lines []string) {
	name := "inet " + tableName + " " + ch.Name
	declared := name
	if ch.Base != nil {
		declared += " { " + ch.Base.String() + " }"
	}
	switch {
	case h == nil:
		lines, h = []string{"+chain " + declared}, &haveChain{}
	case !h.hooked(ch):
		lines = []string{"-chain " + name, "+chain " + declared}
	}
	var hashes []uint64
	for i := range ch.Rules {
		hashes = append(hashes, wire.Hash(&ch.Rules[i]))
	}
	if slices.Equal(h.rules, hashes) {
		return lines
	}
	unlike := slices.ContainsFunc(h.rules, func(hash uint64) bool { return !slices.Contains(hashes, hash) }) ||
		slices.ContainsFunc(hashes, func(hash uint64) bool { return !slices.Contains(h.rules, hash) })
	for _, hash := range h.rules {
		at := slices.Index(hashes, hash)
		switch {
		case at < 0:
			text := unknownRule
			if rule, ok := known[hash]; ok {
				text = rule.String()
			}
			lines = append(lines, "-rule "+name+" "+text)
		case !unlike: // they are in another order, or some are twice
			lines = append(lines, "-rule "+name+" "+ch.Rules[at].String())
		}
	}
	for i := range ch.Rules {
		if !unlike || !slices.Contains(h.rules, hashes[i]) {
			lines = append(lines, "+rule "+name+" "+ch.Rules[i].String())
		}
	}
	return lines
}

// unknownRule stands for a rule that is not one of a Ruleset's: the kernel tells of ours by hashes.
const unknownRule = "# not one that is made here"

// elementLines are about the elements of a set, by key. One that changes has two lines.
func (d *delta) elementLines(set setID) (lines []string) {
	type change struct {
		sign string
		*nft.Element
	}
	var all []change
	for _, of := range []struct {
		sign string
		list []nft.Element
	}{{"-", d.remove[set]}, {"-", d.last[set]}, {"+", d.add[set]}} {
		for i := range of.list {
			all = append(all, change{of.sign, &of.list[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return compare(a.Key, b.Key) })
	for _, c := range all {
		lines = append(lines, fmt.Sprintf("%selement inet %s %s { %s }", c.sign, tableName, set.name(), sets[set].ElementString(c.Element)))
	}
	return lines
}
