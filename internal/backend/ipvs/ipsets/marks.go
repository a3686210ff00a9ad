package ipsets

import (
	"context"
	"fmt"
	"slices"

	"sluice/internal/backend"
	"sluice/internal/plan"
)

// marks are the packet marks of one family by which clients outside come to virtual servers of their own, where the others
// come to another list; see [backend.Mark].
type marks struct {
	masquerade uint32 // the bit
	of         map[plan.PortID]uint32
	taken      map[uint32]plan.PortID
	free       uint32 // no number below it is free
}

func newMarks(o Options) marks {
	return marks{masquerade: 1 << o.MasqueradeBit, of: map[plan.PortID]uint32{}, taken: map[uint32]plan.PortID{}, free: 1}
}

// mark is the mark of a number.
func (m *marks) mark(n uint32) uint32 { return backend.Mark(n, m.masquerade) }

// number is that of a mark, 0 if it is none of these.
func (m *marks) number(mark uint32) uint32 { return backend.MarkNumber(mark, m.masquerade) }

// give gives a Service port the lowest number, unless it has one. There may be none left: then it has no mark, and its
// clients outside are dropped.
func (m *marks) give(id plan.PortID) {
	if m.of[id] != 0 {
		return
	}
	for ; m.free <= backend.MaxMark; m.free++ {
		if _, taken := m.taken[m.free]; !taken {
			m.take(id, m.free)
			return
		}
	}
}

func (m *marks) take(id plan.PortID, n uint32) {
	m.of[id], m.taken[n] = m.mark(n), id
}

// drop takes a Service port's mark back.
func (m *marks) drop(id plan.PortID) {
	if n := m.number(m.of[id]); n != 0 {
		delete(m.taken, n)
		m.free = min(m.free, n)
	}
	delete(m.of, id)
}

// needsMark reports whether clients outside have another list than the others.
func needsMark(p *plan.Port) bool {
	_, apart := p.OutsideList()
	return apart
}

// Mark is the packet mark, never 0, of a Service port's clients outside where they have another list of endpoints than pods
// and this node: that of the virtual server which is to have these. It is not ok if there is none. It stays as long as the
// Service port needs it, once the Ruleset was adopted; see [Backend.Adopt].
func (r *Ruleset) Mark(id plan.PortID) (mark uint32, ok bool) {
	mark = r.families[id.Family].marks.of[id]
	return mark, mark != 0
}

// Adopt has a Ruleset that is about to be applied for the first time take on the marks of the kernel's sets, as Apply
// would: so that they are known before virtual servers are made for them. It writes nothing.
func (b *Backend) Adopt(_ context.Context, r backend.Ruleset) error {
	rs, ok := r.(*Ruleset)
	if !ok {
		return fmt.Errorf("adopt: %T is not a ruleset of mode ipvs in the form of iptables", r)
	}
	if !slices.ContainsFunc(rs.families[:], func(f *family) bool { return !f.adopted }) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	have, err := b.readAllSets()
	if err != nil {
		return err
	}
	for _, f := range rs.families {
		f.adopt(&have[f.family])
	}
	return nil
}

// adopt has Service ports keep the marks that the kernel's sets have for them. Virtual servers are made for them then, so that
// only the first call has an effect.
func (f *family) adopt(have *contents) {
	if f.adopted {
		return
	}
	f.adopted = true
	kept := newMarks(f.opts)
	for _, id := range f.marked() {
		for _, m := range f.members[id] {
			if m.mark == 0 || have[m.kind] == nil {
				continue
			}
			n := kept.number(have[m.kind].Entries[m.Entry])
			if _, taken := kept.taken[n]; n != 0 && !taken {
				kept.take(id, n)
				break
			}
		}
	}
	for _, id := range f.marked() {
		kept.give(id)
	}
	f.remark(kept)
}

// marked are the Service ports with a mark, sorted.
func (f *family) marked() (ids []plan.PortID) {
	for id := range f.marks.of {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, plan.PortID.Compare)
	return ids
}

// remark enters other marks.
func (f *family) remark(now marks) {
	f.marks = now
	for id, members := range f.members {
		for i, m := range members {
			if m.mark == 0 || m.mark == now.of[id] {
				continue
			}
			members[i].mark = now.of[id]
			f.entries[m.kind][m.Entry] = use{members[i].mark, f.entries[m.kind][m.Entry].n}
			f.note(place{m.kind, m.Entry})
		}
	}
}
