package iptables

import (
	"strings"

	"sluice/internal/backend"
	"sluice/internal/model"
)

// ruleCount is a number of rules by table.
type ruleCount [len(tables)]int

// tally are the numbers of rules of one family: those in chains of ours that the kernel has, and those that an Apply
// wrote.
type tally struct{ held, wrote ruleCount }

// count counts the rules in chains of ours.
func (c contents) count() (n ruleCount) {
	for _, t := range tables {
		for name, text := range c[t] {
			if own(t, name) {
				n[t] += ruleCountOf(text)
			}
		}
	}
	return n
}

func ruleCountOf(text string) int { return strings.Count(text, "\n") }

// advance counts what d makes of have.
func (y *tally) advance(d delta, have contents) {
	for _, t := range tables {
		for _, ch := range d[t].write {
			n := ruleCountOf(ch.text)
			y.wrote[t] += n
			y.held[t] += n - ruleCountOf(have[t][ch.name])
		}
		for _, names := range [][]string{d[t].empty, d[t].remove} {
			for _, name := range names {
				y.held[t] -= ruleCountOf(have[t][name])
			}
		}
		for _, e := range d[t].edits {
			if e.place != deletion {
				y.wrote[t]++
			}
		}
	}
}

// Rules tells how many rules there are in the filter and the nat table, of each family whose tables are known. In mangle
// there is none.
func (b *Backend) Rules() (all []backend.TableRules) {
	for f, g := range b.gauges {
		if g == nil {
			continue
		}
		k := g.known.Load()
		if k == nil {
			continue
		}
		for _, t := range []Table{Filter, Nat} {
			all = append(all, backend.TableRules{
				Family: model.Family(f), Table: t.String(), Held: k.tally.held[t], Written: k.tally.wrote[t],
			})
		}
	}
	return all
}
