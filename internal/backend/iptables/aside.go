package iptables

import (
	"maps"
	"slices"
	"strings"

	"sluice/internal/plan"
)

// aside are Service ports whose rules the kernel does not take as they are planned. True: they stay as the kernel has
// them, if it has any; false: it does not take those again either, so they go.
type aside map[plan.PortID]bool

// setAside is f with some Service ports set aside, for a kernel that holds have.
//
// What they keep in shared chains comes last there, so that an address that one of them had and another Service has now
// is the other's.
func (f *family) setAside(ports aside, have contents) *family {
	var aside []*fragment
	for id, stays := range ports {
		switch {
		case id.Family != f.family:
		case stays:
			aside = append(aside, inKernel(id, have))
		default:
			aside = append(aside, &fragment{id: id})
		}
	}
	if len(aside) == 0 {
		return f
	}
	slices.SortFunc(aside, func(a, b *fragment) int { return a.id.Compare(b.id) })
	rest := *f
	rest.chains, rest.fragments = f.chains.clone(), nil
	for _, g := range f.fragments {
		if _, ok := ports[g.id]; !ok {
			rest.fragments = append(rest.fragments, g)
			continue
		}
		for _, name := range g.chains {
			delete(rest.chains[Nat], name)
		}
	}
	for _, g := range aside {
		for _, name := range g.chains {
			rest.chains[Nat][name] = have[Nat][name]
		}
	}
	rest.fragments = append(rest.fragments, aside...)
	for s := range sections {
		rest.concat(&compiler{family: f.family, node: &f.node}, s)
	}
	return &rest
}

func (c contents) clone() (same contents) {
	for t := range c {
		same[t] = maps.Clone(c[t])
	}
	return same
}

// inKernel finds what a kernel that holds have has of a Service port: the lines in shared chains whose comments name it,
// the chains that bear its hash, and all that these lead to.
func inKernel(id plan.PortID, have contents) *fragment {
	g := &fragment{id: id}
	hash := portHash(id)
	todo := []string{prefixCluster + hash, prefixLocal + hash, prefixExternal + hash, prefixFirewall + hash}
	for s := range sections {
		parts := partsOf(s)
		if s != parts.sections[len(parts.sections)-1] {
			continue // one section of each chain takes them all
		}
		for _, l := range lines(have[parts.table][chainOf[s]]) {
			if isOf(id, l) {
				g.lines[s] += l + "\n"
				todo = append(todo, targetOf(l))
			}
		}
	}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		text, ok := have[Nat][name]
		if !ok || !own(Nat, name) || ownChains[Nat][name] || slices.Contains(g.chains, name) {
			continue
		}
		g.chains = append(g.chains, name)
		for _, l := range lines(text) {
			todo = append(todo, targetOf(l))
		}
	}
	return g
}

// isOf reports whether the comment of a line in a shared chain begins with the name of a Service port.
func isOf(id plan.PortID, l string) bool {
	name := id.String()
	if !strings.Contains(l, name) {
		return false // without taking it apart
	}
	rule, err := ruleOf(l).rule.Parse()
	return err == nil && strings.HasPrefix(rule.Comment()+" ", name+" ")
}
