package iptables

import (
	"maps"
	"reflect"
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Ruleset is a compiled Plan: what the tables of both families are to hold.
type Ruleset struct {
	opts     Options
	families [2]*family
}

// Compile compiles a whole Plan.
func Compile(p *plan.Plan, opts Options) *Ruleset {
	r := &Ruleset{opts: opts}
	for _, f := range model.Families {
		r.families[f] = &family{family: f, desired: desired{chains: newContents()}}
		r.families[f].rebuild(p, opts)
	}
	return r
}

// Update brings the Ruleset up to date with p after changes. Chains that come out as they were keep their identity.
func (r *Ruleset) Update(p *plan.Plan, changes plan.Changes) {
	for _, f := range r.families {
		if changes.Node && f.differs(p) || !f.change(p, r.opts, changes.Ports) {
			f.rebuild(p, r.opts)
		}
	}
}

// largeCluster is the number of endpoints of one family above which comments on their rules are left out, as
// kube-proxy does, since they are then most of the table.
const largeCluster = 1000

// compiler is what the rules of one family depend on, besides the Service port.
type compiler struct {
	family model.Family
	node   *plan.Node
	opts   Options
	large  bool
}

// family is a compiled Plan's part for one address family.
type family struct {
	family    model.Family
	fragments []*fragment // by ID
	desired
	large     bool
	endpoints int
	node      plan.Node // as the rules have it
}

// differs reports whether rules depend on what is new of this node. Addresses come and go with every pod; they matter
// where node ports are served at some alone, or where a Service has one as its own.
func (f *family) differs(p *plan.Plan) bool {
	old, now := &f.node, &p.Node
	if now.AnswerPing != old.AnswerPing || now.AnswerPing && now.Primary[f.family] != old.Primary[f.family] {
		return true
	}
	if now.Detect[f.family] != old.Detect[f.family] || !reflect.DeepEqual(now.NodePorts[f.family], old.NodePorts[f.family]) {
		return true
	}
	for id, port := range p.Ports {
		moved := func(fe plan.Frontend) bool { return now.IsLocal(fe.Addr) != old.IsLocal(fe.Addr) }
		if id.Family == f.family && slices.ContainsFunc(port.Frontends, moved) {
			return true
		}
	}
	f.node = *now
	return false
}

// rebuild compiles every Service port of this family.
func (f *family) rebuild(p *plan.Plan, opts Options) {
	if f.fragments == nil {
		f.large = likelyLarge(p, f.family) // or all would be compiled twice
	}
	c := &compiler{f.family, &p.Node, opts, f.large}
	f.compileAll(c, p)
	if large := f.endpoints > largeCluster; large != f.large {
		f.large, c.large = large, large
		f.compileAll(c, p)
	}
	for s := range sections {
		f.concat(c, s)
	}
	for _, ch := range c.fixedChains() {
		f.set(ch.table, ch.chain)
	}
	f.firewall, f.node = c.firewallRules(), p.Node
}

// likelyLarge guesses whether a family has many endpoints: all of the first lists, though not every port uses its list.
func likelyLarge(p *plan.Plan, f model.Family) bool {
	n := 0
	for id, port := range p.Ports {
		if id.Family == f {
			n += len(port.Cluster)
		}
	}
	return n > largeCluster
}

func (f *family) compileAll(c *compiler, p *plan.Plan) {
	f.fragments, f.endpoints = nil, 0
	wanted := map[string]bool{}
	for _, port := range p.Sorted() {
		if port.ID.Family != f.family {
			continue
		}
		g, chains := c.compile(port)
		f.fragments = append(f.fragments, g)
		f.endpoints += g.endpoints
		for _, ch := range chains {
			f.set(Nat, ch)
			wanted[ch.name] = true
		}
	}
	maps.DeleteFunc(f.chains[Nat], func(name, _ string) bool { return !ownChains[Nat][name] && !wanted[name] })
}

// set enters a chain. A text that does not change stays the same string, to be compared at no cost with what was
// written, and held once.
func (f *family) set(t Table, c chain) {
	if was, ok := f.chains[t][c.name]; !ok || was != c.text {
		f.chains[t][c.name] = c.text
	}
}

// change compiles the Service ports that changed. It reports false if that does not suffice.
func (f *family) change(p *plan.Plan, opts Options, changes []plan.Change) bool {
	c := &compiler{f.family, &p.Node, opts, f.large}
	var touched [sections]bool
	for _, change := range changes {
		if change.ID.Family == f.family {
			f.replace(c, change, &touched)
		}
	}
	for s := range sections {
		if touched[s] {
			f.concat(c, s)
		}
	}
	return f.endpoints > largeCluster == f.large
}

// replace puts the new fragment of a Service port in the place of the old one, and notes the sections that differ.
func (f *family) replace(c *compiler, change plan.Change, touched *[sections]bool) {
	at, found := slices.BinarySearchFunc(f.fragments, change.ID, func(g *fragment, id plan.PortID) int { return g.id.Compare(id) })
	old, now := &fragment{}, &fragment{}
	if found {
		old = f.fragments[at]
		f.fragments = slices.Delete(f.fragments, at, at+1)
	}
	wanted := map[string]bool{}
	if change.New != nil {
		var chains []chain
		now, chains = c.compile(change.New)
		f.fragments = slices.Insert(f.fragments, at, now)
		for _, ch := range chains {
			f.set(Nat, ch)
			wanted[ch.name] = true
		}
	}
	for _, name := range old.chains {
		if !wanted[name] {
			delete(f.chains[Nat], name)
		}
	}
	f.endpoints += now.endpoints - old.endpoints
	for s := range sections {
		touched[s] = touched[s] || old.lines[s] != now.lines[s]
	}
}
