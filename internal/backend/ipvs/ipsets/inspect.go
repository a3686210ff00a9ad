package ipsets

import (
	"context"
	"fmt"
	"slices"

	"sluice/internal/iptables/rules"
	"sluice/internal/iptables/sets"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
	"sluice/internal/trace/iptwalk"
)

// Compare tells what a new process would change in the kernel to have it hold what r says: lines as ipset and iptables-save
// print them, "-" before what would go, "+" before what would come. What differs in marks alone is no difference: r takes
// on those of the kernel, so it must be one that nobody has applied.
func (b *Backend) Compare(ctx context.Context, r *Ruleset) (lines []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	have, err := b.readAllSets()
	if err != nil {
		return nil, err
	}
	for _, s := range b.sides {
		if s == nil {
			continue
		}
		f := r.families[s.family]
		f.adopt(&have[s.family])
		lines = append(lines, f.compareSets(&have[s.family])...)
		rs, err := readRules(ctx, s.tables)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.family, err)
		}
		lines = append(lines, compareRules(s.family, diff(f.tables, rs), rs)...)
	}
	return lines, nil
}

// compareSets tells of sets and entries.
func (f *family) compareSets(have *contents) (lines []string) {
	for _, d := range f.setChanges(have, nil, true, nil) {
		name := setName(d.kind, f.family)
		if d.replace {
			lines = append(lines, "-"+have[d.kind].Create())
		}
		if d.header.Name != "" {
			lines = append(lines, "+"+d.header.Create())
		}
		for _, e := range d.remove {
			lines = append(lines, "-add "+name+" "+e.String())
		}
		for _, i := range d.add {
			one := sets.Set{Header: d.header, Entries: map[sets.Entry]uint32{i.Entry: i.mark}}
			one.Name = name
			lines = append(lines, "+"+one.Lines()[1])
		}
	}
	for k, s := range have {
		if s != nil && !f.present(kind(k)) {
			lines = append(lines, "-"+s.Create())
		}
	}
	return lines
}

// compareRules tells of rules.
func compareRules(f model.Family, d delta, have *rules.Ruleset) (lines []string) {
	for _, name := range tableNames {
		tell := func(sign, chain string, rs, but []rules.Rule) {
			for _, r := range rs {
				if !slices.ContainsFunc(but, func(o rules.Rule) bool { return rules.Equal(r, o) }) {
					lines = append(lines, fmt.Sprintf("%s%s %s %s", sign, f, name, r.Line(chain)))
				}
			}
		}
		for _, c := range d[name].write {
			old := rulesOf(have.Table(name).Chain(c.Name))
			if have.Table(name).Chain(c.Name) == nil {
				lines = append(lines, fmt.Sprintf("+%s %s %s", f, name, c.Declaration()))
			}
			tell("-", c.Name, old, c.Rules)
			tell("+", c.Name, c.Rules, old)
		}
		for _, chain := range slices.Concat(d[name].empty, d[name].remove) {
			tell("-", chain, have.Table(name).Chain(chain).Rules, nil)
		}
		for _, e := range d[name].edits {
			sign := map[bool]string{true: "-", false: "+"}[e.place == deletion]
			tell(sign, e.from, []rules.Rule{e.rule}, nil)
		}
	}
	return lines
}

func (b *Backend) readAllSets() (have [2]contents, err error) {
	conn, err := b.deps.Sets()
	if err != nil {
		return have, err
	}
	have, err = readSets(conn)
	if closeErr := conn.Close(); err == nil {
		err = closeErr
	}
	return have, err
}

// TraceKernel walks a packet through tables and sets as the kernel has them, whoever wrote them. The host's sets are filled
// in, and its addresses completed by those on the interface of ipvs.
func (b *Backend) TraceKernel(ctx context.Context, pkt plan.Packet, host iptwalk.Host) (trace.Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := model.FamilyOf(pkt.To.Addr())
	if b.sides[f] == nil {
		return trace.Result{}, ErrNoFamily
	}
	rs, err := readRules(ctx, b.sides[f].tables)
	if err != nil {
		return trace.Result{}, err
	}
	have, err := b.readAllSets()
	if err != nil {
		return trace.Result{}, err
	}
	host.Addrs = slices.Clone(host.Addrs)
	if bound := have[f][ipvsIPs]; bound != nil {
		for e := range bound.Entries {
			host.Addrs = append(host.Addrs, e.Addr)
		}
	}
	host.Sets = func(name string) *sets.Set {
		if k, of, ok := kindOf(name); ok && of == f {
			return have[f][k]
		}
		return nil // somebody else's
	}
	return iptwalk.Walk(rs, pkt, host), nil
}
