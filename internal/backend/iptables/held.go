package iptables

import (
	"fmt"
	"slices"
	"strings"
)

// held are chains, by table, that the kernel does not remove, since something leads to them that iptables-save does
// not show: a verdict map of nft, or a rule made after it was run. They are emptied instead.
type held [len(tables)]map[string]bool

// note takes in the chain that d could not remove, by the line of its text that was refused; 0 is unknown. It reports
// false if that line does anything else.
func (h *held) note(d delta, line int) bool {
	all := lines(string(d.text()))
	if line < 1 || line > len(all) {
		return false
	}
	name, ok := strings.CutPrefix(all[line-1], "-X ")
	if !ok {
		return false
	}
	t := tableAt(all[:line])
	if h[t] == nil {
		h[t] = map[string]bool{}
	}
	h[t][name] = true
	return true
}

// tableAt is the table that the last of some lines belongs to.
func tableAt(all []string) (at Table) {
	for _, t := range tables {
		if slices.Contains(all, "*"+t.String()) {
			at = t
		}
	}
	return at
}

// spare has d remove no chain that is held.
func (h *held) spare(d *delta, have contents) {
	for _, t := range tables {
		var remove []string
		for _, name := range d[t].remove {
			switch {
			case !h[t][name]:
				remove = append(remove, name)
			case have[t][name] != "":
				d[t].empty = append(d[t].empty, name)
			}
		}
		d[t].remove = remove
	}
}

// errHeld tells of chains of ours that stay after all others are removed.
func errHeld(have contents) error {
	var names []string
	for _, t := range tables {
		for name := range have[t] {
			if own(t, name) {
				names = append(names, t.String()+" "+name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("rules of others lead to these chains, which stay, emptied: %s", strings.Join(names, ", "))
}
