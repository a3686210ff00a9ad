package iptables

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"sluice/internal/iptables/rules"
	"sluice/internal/model"
)

// ChainChange is a chain that an Apply would make another.
type ChainChange struct {
	Table, Chain string
	// Old and New are its rules, a line each as iptables-save prints them. A line that stays is spelled alike in both.
	Old, New []string
	// Made and Removed say that the chain itself comes or goes.
	Made, Removed bool
}

// Compare tells what an Apply would change in one family's tables, which hold what iptables-save printed. Chains are
// sorted by table and name.
func (r *Ruleset) Compare(f model.Family, saved []byte) (changes []ChainChange, err error) {
	rs, err := rules.Parse(bytes.NewReader(saved))
	if err != nil {
		return nil, fmt.Errorf("read what iptables-save printed: %w", err)
	}
	have := contentsOf(rs, r.families[f].chains)
	var then contents
	for t := range have {
		then[t] = maps.Clone(have[t])
	}
	then.advance(diff(r.families[f].desired, have))
	for _, t := range tables {
		changes = append(changes, changedChains(t, have[t], then[t])...)
	}
	return changes, nil
}

func changedChains(t Table, have, then map[string]string) (changes []ChainChange) {
	names := maps.Clone(have)
	maps.Copy(names, then)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, had := have[name]
		now, has := then[name]
		if had == has && was == now {
			continue
		}
		changes = append(changes, ChainChange{
			Table: t.String(), Chain: name, Old: spelledAs(lines(was), lines(now)), New: lines(now), Made: !had, Removed: !has,
		})
	}
	return changes
}

// spelledAs spells the rules in old as equal ones in now are.
func spelledAs(old, now []string) []string {
	spelling := map[string]string{}
	for _, l := range now {
		spelling[ruleOf(l).rule.Normal()] = l
	}
	old = slices.Clone(old)
	for i, l := range old {
		if same, ok := spelling[ruleOf(l).rule.Normal()]; ok {
			old[i] = same
		}
	}
	return old
}
