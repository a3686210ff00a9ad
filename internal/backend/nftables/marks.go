package nftables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sluice/internal/backend"
	"sluice/internal/plan"
)

// marks gives out the packet marks that lead to virtual servers, as numbers gives out numbers; see [backend.Mark].
type marks struct {
	numbers numbers
	// masquerade is the bit.
	masquerade uint32
}

var errNoMark = &backend.Declined{By: "mode nftables", Err: errors.New("too many Service ports with externalTrafficPolicy Local")}

// of is the mark of a number.
func (m *marks) of(n uint32) uint32 { return backend.Mark(n, m.masquerade) }

// others are the bits that are the same in all marks.
func (m *marks) others() uint32 { return ^(m.of(0) ^ m.of(backend.MaxMark)) }

// number is that of a mark, 0 if it is none of these.
func (m *marks) number(mark uint32) uint32 { return backend.MarkNumber(mark, m.masquerade) }

func (m *marks) take() (uint32, error) {
	n, err := m.numbers.take()
	if err != nil {
		return 0, errNoMark
	}
	return m.of(n), nil
}

// reserve takes a mark that somebody has in the kernel. It reports false if it is none or given out already.
func (m *marks) reserve(mark uint32) bool { return m.numbers.reserve(m.number(mark)) }

func (m *marks) give(mark uint32) { m.numbers.give(m.number(mark)) }

// needsMark reports whether clients outside are sent to l by way of a virtual server of its own.
func needsMark(p *plan.Port, l plan.List) bool {
	outside, apart := p.OutsideList()
	return apart && outside == l
}

// markList gives a list the mark that it had, or a new one.
func (s *stocks) markList(now, old *list) (err error) {
	if now.mark = old.mark; now.mark == 0 {
		now.mark, err = s.marks.take()
	}
	return err
}

// Mark is the packet mark of a Service port's clients outside that are sent to endpoints of their own: that of the
// virtual server which is to have these. It reports false if there are none. It stays as long as the Service port needs
// it, once the Ruleset was adopted; see [Backend.Adopt].
func (r *Ruleset) Mark(id plan.PortID) (mark uint32, ok bool) {
	p := r.ports[id]
	if p == nil {
		return 0, false
	}
	for i := range p.lists {
		mark |= p.lists[i].mark // one of them at most has one
	}
	return mark, mark != 0
}

// Omitted are the Service ports that there are no rules for, because there was no mark left, say: Apply refuses them.
func (r *Ruleset) Omitted() []plan.PortID { return slices.Collect(maps.Keys(r.problems)) }

// Adopt has a Ruleset that is about to be applied for the first time take on the numbers of the kernel's table, as Apply
// would: so that marks are known before anything is written. It writes nothing, and is to be called by who needs them.
func (b *Backend) Adopt(ctx context.Context, r backend.Ruleset) error {
	rs, ok := r.(*Ruleset)
	if !ok {
		return fmt.Errorf("adopt: %T is not a ruleset of mode nftables", r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if rs.adopted {
		return nil
	}
	if err := b.open(); err != nil {
		return err
	}
	a := &run{Backend: b, rules: rs, result: &backend.Result{}}
	have, err := a.readFrame(ctx)
	if err != nil {
		return err
	}
	if have != nil {
		err = a.adopt(ctx, have, map[setID]*listing{})
	}
	rs.adopted = err == nil
	return err
}
