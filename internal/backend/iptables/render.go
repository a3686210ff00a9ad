package iptables

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/model"
)

// Render writes the rules as text for iptables-restore and then, if there are Service ports of IPv6, as text for
// ip6tables-restore.
func (r *Ruleset) Render(w io.Writer) error {
	for _, f := range model.Families {
		if !r.needed(f) {
			continue
		}
		if _, err := io.WriteString(w, "# "+f.String()+"\n"); err != nil {
			return err
		}
		if err := r.RenderFamily(w, f); err != nil {
			return err
		}
	}
	return nil
}

// needed reports whether there is anything to show of a family.
func (r *Ruleset) needed(f model.Family) bool {
	return f == model.IPv4 && !r.needed(model.IPv6) || len(r.families[f].fragments) > 0
}

// RenderFamily writes the rules of one family, as they come out in an otherwise empty kernel: first the chains that
// all Service ports share, then each one's own.
func (r *Ruleset) RenderFamily(w io.Writer, f model.Family) error {
	b := bufio.NewWriter(w)
	for _, t := range tables {
		r.families[f].render(b, t)
	}
	return b.Flush()
}

// render leaves its errors to the Flush of b, which keeps the first one.
func (f *family) render(b *bufio.Writer, t Table) {
	write := func(words ...string) {
		for _, w := range words {
			_, _ = b.WriteString(w)
		}
	}
	chains, jumps := f.ordered(t), f.jumps(t)
	write("*", t.String(), "\n")
	for _, from := range kernelChains {
		if slices.ContainsFunc(jumps, func(j jump) bool { return j.from == from }) {
			write(":", from, " ACCEPT [0:0]\n")
		}
	}
	for _, c := range chains {
		write(":", c.name, " - [0:0]\n")
	}
	for _, j := range jumps {
		write(j.rule, "\n")
	}
	for _, c := range chains {
		write(c.text)
	}
	write("COMMIT\n")
}

// jumps are those that belong to the rules of one table, in their order.
func (f *family) jumps(t Table) (js []jump) {
	if t == Filter && f.firewall != "" {
		js = append(js, firewallJumps...)
	}
	for _, from := range kernelChains {
		js = append(js, jumpsFrom(t, from)...)
	}
	slices.SortStableFunc(js, func(a, b jump) int {
		return slices.Index(kernelChains[:], a.from) - slices.Index(kernelChains[:], b.from)
	})
	return js
}

// ordered lists the chains of a table: the shared ones by name, then those of each Service port as they were compiled.
func (f *family) ordered(t Table) (cs []chain) {
	for name, text := range f.chains[t] {
		if ownChains[t][name] {
			cs = append(cs, chain{name, text})
		}
	}
	if t == Filter && f.firewall != "" {
		cs = append(cs, chain{chainFirewall, f.firewall})
	}
	slices.SortFunc(cs, func(a, b chain) int { return strings.Compare(a.name, b.name) })
	if t == Nat {
		for _, g := range f.fragments {
			for _, name := range g.chains {
				cs = append(cs, chain{name, f.chains[Nat][name]})
			}
		}
	}
	return cs
}

// text is what iptables-restore --noflush has to be given, empty if there is nothing to do. Every chain is declared
// before any rule, so that no rule leads to a chain that is not there, and one that goes is empty by then.
func (d delta) text() []byte {
	var b []byte
	line := func(words ...string) {
		for _, w := range words {
			b = append(b, w...)
		}
	}
	for _, t := range tables {
		d := d[t]
		if (delta{d}).size() == 0 {
			continue
		}
		line("*", t.String(), "\n")
		for _, name := range d.declared() {
			line(":", name, " - [0:0]\n")
		}
		for _, c := range d.write {
			line(c.text)
		}
		for _, e := range d.edits {
			line(e.line(), "\n")
		}
		for _, name := range d.remove {
			line("-X ", name, "\n")
		}
		line("COMMIT\n")
	}
	return b
}

// declared are the chains that are made or emptied, and those of the kernel that get a rule: to these a declaration
// without a policy does nothing, except that it makes them in a table that is not there yet, which the nft variant
// leaves undone in a text so long that package iptexec has it read the whole table.
func (d tableDelta) declared() (names []string) {
	for _, from := range kernelChains {
		if slices.ContainsFunc(d.edits, func(e edit) bool { return e.from == from }) {
			names = append(names, from)
		}
	}
	names = append(names, d.create...)
	for _, c := range d.write {
		names = append(names, c.name)
	}
	return slices.Concat(names, d.empty, d.remove)
}

// line is the edit for iptables-restore.
func (e edit) line() string {
	spec := strings.TrimPrefix(e.rule, "-A "+e.from)
	switch e.place {
	case 0:
		return e.rule
	case deletion:
		return "-D " + e.from + spec
	}
	return "-I " + e.from + " " + strconv.Itoa(e.place) + spec
}
