package ipsets

import (
	"slices"
	"strconv"
	"strings"
)

// text is what iptables-restore --noflush has to be given, empty if there is nothing to do. Every chain is declared before
// any rule, so that no rule leads to a chain that is not there, and one that goes is empty by then.
func (d delta) text() []byte {
	var b []byte
	line := func(words ...string) { b = append(append(b, strings.Join(words, " ")...), '\n') }
	for _, name := range tableNames {
		t := d[name]
		if t == nil || (delta{name: t}).size() == 0 {
			continue
		}
		line("*" + name)
		for _, chain := range t.declared() {
			line(":"+chain, "- [0:0]")
		}
		for _, c := range t.write {
			for _, r := range c.Rules {
				line(r.Line(c.Name))
			}
		}
		for _, e := range t.edits {
			line(e.line())
		}
		for _, chain := range t.remove {
			line("-X", chain)
		}
		line("COMMIT")
	}
	return b
}

// declared are the chains that are made or emptied, and those of the kernel that get a rule: to these a declaration
// without a policy does nothing, except that it makes them in a table that is not there yet.
func (t *tableDelta) declared() (names []string) {
	for _, from := range kernelChains {
		if slices.ContainsFunc(t.edits, func(e edit) bool { return e.from == from }) {
			names = append(names, from)
		}
	}
	for _, c := range t.write {
		names = append(names, c.Name)
	}
	return slices.Concat(names, t.empty, t.remove)
}

// line is the edit for iptables-restore.
func (e edit) line() string {
	if e.place == deletion {
		return "-D " + e.from + " " + string(e.rule)
	}
	return "-I " + e.from + " " + strconv.Itoa(e.place) + " " + string(e.rule)
}

// removal is the chain that a line of d's text removes, and its table. It reports false if the line does anything else.
func (d delta) removal(number int) (table, chain string, ok bool) {
	all := strings.Split(string(d.text()), "\n")
	if number < 1 || number > len(all) {
		return "", "", false
	}
	for _, l := range all[:number] {
		if name, is := strings.CutPrefix(l, "*"); is {
			table = name
		}
	}
	chain, ok = strings.CutPrefix(all[number-1], "-X ")
	return table, chain, ok
}
