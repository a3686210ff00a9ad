package ipsets

import (
	"bufio"
	"io"
	"strings"

	"sluice/internal/model"
)

// Render writes, for IPv4 and then, if there are Service ports of it, for IPv6, the sets as text for ipset restore and the
// rules as text for iptables-restore or ip6tables-restore.
func (r *Ruleset) Render(w io.Writer) error {
	for _, f := range model.Families {
		if !r.needed(f) {
			continue
		}
		if err := r.RenderFamily(w, f); err != nil {
			return err
		}
	}
	return nil
}

// needed reports whether there is anything to show of a family.
func (r *Ruleset) needed(f model.Family) bool {
	return f == model.IPv4 && !r.needed(model.IPv6) || len(r.families[f].members) > 0
}

// RenderFamily writes the sets and rules of one family, as they come out in an otherwise empty kernel.
func (r *Ruleset) RenderFamily(w io.Writer, f model.Family) error {
	b := bufio.NewWriter(w)
	line := func(s string) { _, _ = b.WriteString(s + "\n") } // Flush tells the first error
	line("# " + f.String() + " sets")
	for k := range kinds {
		if r.families[f].present(k) {
			line(strings.Join(r.families[f].set(k).Lines(), "\n"))
		}
	}
	line("# " + f.String() + " rules")
	if err := b.Flush(); err != nil {
		return err
	}
	return r.families[f].tables.Write(w)
}
