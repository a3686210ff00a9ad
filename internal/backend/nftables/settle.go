package nftables

import (
	"context"

	"sluice/internal/plan"
)

// manyDifferences is how many may be repaired one by one. To make the table anew costs less memory, and not much more
// time.
const manyDifferences = 1 << 13

// begin is for a table of which nothing is known. Its numbers become those of the Ruleset, so that only what really
// differs is written.
func (a *run) begin(ctx context.Context) error {
	a.drift.take()
	a.fresh = true
	if err := a.rebase(ctx); err != nil {
		return err
	}
	have, err := a.readFrame(ctx)
	if err != nil {
		return err
	}
	a.unrouteBefore(have.guardsLoopback())
	read := map[setID]*listing{}
	if have != nil {
		if err := a.adopt(ctx, have, read); err != nil {
			return err
		}
	}
	return a.writeWhole(a.rules.takeDirty(), func(c *contents) error {
		_, err := a.fill(ctx, c, have, read)
		return err
	})
}

// writeWhole has all that the Ruleset wants be written, whatever of it is dirty.
func (a *run) writeWhole(dirty dirt, write func(*contents) error) error {
	doubt := a.doubt
	a.doubt = sure
	if err := write(a.known.wanted(a.rules, a.req.Hold)); err != nil {
		a.rules.markDirty(dirty)
		a.doubt = max(a.doubt, doubt)
		return err
	}
	a.of, a.begun = a.rules, true
	a.putBack(a.req.Hold)
	return nil
}

// adopt has the Ruleset use the numbers of the table. It adds to read what it has read.
func (a *run) adopt(ctx context.Context, have *frame, read map[setID]*listing) error {
	h := newHeld()
	for set := range setCount {
		if !have.has(set) {
			continue
		}
		h.size(set, have.sets[set.name()].Size)
		if !isNumbered(set) {
			continue
		}
		l, err := a.readSet(ctx, set)
		if err != nil {
			return err
		}
		for e := range l.elements {
			h.take(set, e)
		}
		read[set] = l
	}
	if !a.begun {
		a.result.Former = h.former(a.rules)
	}
	a.rules.adopt(h)
	return nil
}

// rewrite makes the table anew, whatever the kernel has.
func (a *run) rewrite(ctx context.Context) error {
	a.drift.take()
	if err := a.rebase(ctx); err != nil {
		return err
	}
	if a.begun && a.doubt == others {
		a.result.Restored = append(a.result.Restored, "table inet "+tableName)
	}
	return a.writeWhole(a.rules.takeDirty(), func(c *contents) error { return a.reload(ctx, c, true) })
}

// recheck makes the kernel hold again what it is known to have held. It tells what it did not.
func (a *run) recheck(ctx context.Context) (names []string, err error) {
	if err := a.rebase(ctx); err != nil {
		return nil, err
	}
	have, err := a.readFrame(ctx)
	if err != nil {
		return nil, err
	}
	doubt := a.doubt
	a.doubt = sure
	if names, err = a.fill(ctx, a.known.contents(), have, nil); err != nil {
		a.doubt = max(a.doubt, doubt)
	}
	return names, err
}

// fill makes the table hold c, and tells what differed. Of some sets it is known what the kernel has.
func (a *run) fill(ctx context.Context, c *contents, have *frame, read map[setID]*listing) (names []string, err error) {
	if have == nil {
		return []string{"table inet " + tableName}, a.reload(ctx, c, false)
	}
	d := &a.delta
	d.reset()
	d.most = manyDifferences
	if broken := d.compareFrame(c, have); len(broken) > 0 {
		return broken, a.reload(ctx, c, true)
	}
	refs := newReferences(c)
	for set := range setCount {
		if isOfClients(set) {
			continue
		}
		l := read[set]
		if l == nil {
			if l, err = a.readSet(ctx, set); err != nil {
				return nil, err
			}
		}
		d.compare(c, set, refs, l.elements)
		if l.err != nil {
			return nil, l.err
		}
		delete(read, set) // its memory is wanted for the next one
		if d.over {
			return d.names(), a.reload(ctx, c, true)
		}
	}
	names = d.names()
	err = a.send(ctx, d, func() { a.known = writtenAll(c, refs) })
	if isRefusal(err) && !isStale(err) {
		err = a.reload(ctx, c, true)
	}
	return names, err
}

// putBack has ports be compared again next time.
func (a *run) putBack(ids map[plan.PortID]bool) {
	for id := range ids {
		a.rules.markDirty(dirt{ports: map[plan.PortID]struct{}{id: {}}})
	}
}
