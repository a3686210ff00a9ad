package ipsets

import (
	"slices"

	"sluice/internal/iptables/rules"
	"sluice/internal/iptables/sets"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// Ruleset is a compiled Plan: what the sets and the tables of both families are to hold.
type Ruleset struct{ families [2]*family }

// Compile compiles a whole Plan.
func Compile(p *plan.Plan, opts Options) *Ruleset {
	r := &Ruleset{}
	for _, f := range model.Families {
		r.families[f] = &family{family: f, opts: opts, members: map[plan.PortID][]member{}, marks: newMarks(opts)}
		r.families[f].rebuild(p)
	}
	return r
}

// Update brings the Ruleset up to date with p after changes.
func (r *Ruleset) Update(p *plan.Plan, changes plan.Changes) {
	for _, f := range r.families {
		if changes.Node && f.differs(p) {
			f.rebuild(p)
		} else {
			f.change(p, changes.Ports)
		}
	}
}

// family is a compiled Plan's part for one address family.
type family struct {
	family  model.Family
	opts    Options
	node    plan.Node // as the entries and rules have it
	members map[plan.PortID][]member
	marks   marks
	// adopted is set once the marks of the kernel's sets were taken on.
	adopted bool
	entries [kinds]map[sets.Entry]use
	// log has the entries that changed, in order; those before it, as many as dropped says, are forgotten.
	log     []place
	dropped int
	// tables are the rules in full, but for the policies of the kernel's chains. They are what shape asks for.
	tables *rules.Ruleset
	shape  shape
}

// use is an entry's mark and how many times Service ports have it.
type use struct {
	mark uint32
	n    int
}

// place is where an entry is.
type place struct {
	kind kind
	sets.Entry
}

// rebuild compiles every Service port of this family.
func (f *family) rebuild(p *plan.Plan) {
	c := f.compiler(&p.Node)
	for id := range f.members {
		if p.Ports[id] == nil {
			f.replace(c, id, nil)
		}
	}
	for _, port := range p.Sorted() { // so that marks are the same each time
		if port.ID.Family == f.family {
			f.replace(c, port.ID, port)
		}
	}
	f.refresh(c)
}

func (f *family) compiler(n *plan.Node) *compiler { return &compiler{f.family, n, f.opts, &f.marks} }

// change compiles the Service ports that changed.
func (f *family) change(p *plan.Plan, changes []plan.Change) {
	c := f.compiler(&p.Node)
	for _, change := range changes {
		if change.ID.Family == f.family {
			f.replace(c, change.ID, change.New)
		}
	}
	f.refresh(c)
}

// differs reports whether entries depend on what is new of this node. Addresses come and go with every pod; they matter
// where a Service has one as its own, or where a node port is entered with them.
func (f *family) differs(p *plan.Plan) bool {
	old, now := f.compiler(&f.node), f.compiler(&p.Node)
	sctp := len(f.entries[nodePort.ofProtocol(model.SCTP)]) > 0
	if sctp && !slices.Equal(old.nodePortAddresses(), now.nodePortAddresses()) {
		return true
	}
	for id, port := range p.Ports {
		moved := func(fe plan.Frontend) bool { return now.node.IsLocal(fe.Addr) != old.node.IsLocal(fe.Addr) }
		if id.Family == f.family && slices.ContainsFunc(port.Frontends, moved) {
			return true
		}
	}
	return false
}

// replace puts the entries of a Service port in the place of those it had; nil: it has none.
func (f *family) replace(c *compiler, id plan.PortID, now *plan.Port) {
	old := f.members[id]
	delete(f.members, id)
	if now != nil && needsMark(now) {
		f.marks.give(id)
	} else {
		f.marks.drop(id)
	}
	if now != nil {
		f.members[id] = c.members(now)
	}
	for _, m := range f.members[id] {
		f.count(m, 1)
	}
	for _, m := range old {
		f.count(m, -1)
	}
}

// count enters a member, or takes it away. Of two marks the one that was entered last counts.
func (f *family) count(m member, by int) {
	if f.entries[m.kind] == nil {
		f.entries[m.kind] = map[sets.Entry]use{}
	}
	u, had := f.entries[m.kind][m.Entry]
	was := u
	if u.n += by; by > 0 {
		u.mark = m.mark
	}
	if f.entries[m.kind][m.Entry] = u; u.n == 0 {
		delete(f.entries[m.kind], m.Entry)
	}
	if had != (u.n > 0) || was.mark != u.mark {
		f.note(place{m.kind, m.Entry})
	}
}

// maxLog is where to compare all entries costs no more than to remember those that changed.
const maxLog = 1 << 16

// note enters a change in the log.
func (f *family) note(p place) {
	if f.log = append(f.log, p); len(f.log) > maxLog {
		f.dropped += len(f.log)
		f.log = nil
	}
}

// position is how many changes there have been.
func (f *family) position() int { return f.dropped + len(f.log) }

// since are the changes after a position. It reports false if they are not remembered any more.
func (f *family) since(position int) ([]place, bool) {
	if position < f.dropped || position > f.position() {
		return nil, false
	}
	return f.log[position-f.dropped:], true
}

// refresh makes the rules anew if they have another shape than before.
func (f *family) refresh(c *compiler) {
	f.node = *c.node
	if s := f.shapeOf(c); f.tables == nil || s != f.shape {
		f.shape, f.tables = s, c.tables(s)
	}
}

// present reports whether the kernel is to have a set: all of kube-proxy's, and those of ours that have entries.
func (f *family) present(k kind) bool {
	return forms[k].name != "" && (k < firstOfOurs || len(f.entries[k]) > 0)
}

// set is a set in full.
func (f *family) set(k kind) *sets.Set {
	s := &sets.Set{Header: header(k, f.family, len(f.entries[k])), Entries: make(map[sets.Entry]uint32, len(f.entries[k]))}
	for e, u := range f.entries[k] {
		s.Entries[e] = u.mark
	}
	return s
}
