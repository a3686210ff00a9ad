package nftables

import (
	"context"
	"slices"

	"sluice/internal/plan"
)

const (
	// manyPorts is how many ports are at least written with all others, if they are most: one by one would cost as much.
	manyPorts = 1 << 10
	// piece is how many ports are written at once where the kernel does not take all at once.
	piece = 1 << 10
)

// changes writes what changed in the Ruleset since it was last written.
func (a *run) changes(ctx context.Context) error {
	dirty := a.rules.takeDirty()
	if dirty.table || len(dirty.ports) > max(manyPorts, len(a.rules.ports)/2) {
		err := a.writeWhole(dirty, func(c *contents) error { return a.reload(ctx, c, true) })
		if err != nil {
			return err
		}
		dirty = a.rules.takeDirty() // what could not be written with all the rest
	}
	if err := a.writePorts(ctx, dirty); err != nil {
		a.rules.markDirty(dirty)
		return err
	}
	for id := range dirty.ports {
		if a.req.Hold[id] || a.result.Refused[id] != nil {
			a.rules.markDirty(dirt{ports: map[plan.PortID]struct{}{id: {}}})
		}
	}
	return a.collectChains(ctx)
}

// writePorts writes ports one by one, as it were: as many at once as the kernel takes.
func (a *run) writePorts(ctx context.Context, dirty dirt) error {
	ids := a.order(dirty.ports)
	most := len(ids)
	if a.apart {
		most = piece
	}
	for len(ids) > 0 || dirty.node {
		n := min(len(ids), most)
		if err := a.write(ctx, ids[:n]); err != nil {
			return err
		}
		ids, dirty.node = ids[n:], false
	}
	return nil
}

// order lists the ports that are not to be held. Those that go come first, since others may have their frontends.
func (a *run) order(ports map[plan.PortID]struct{}) []plan.PortID {
	ids := make([]plan.PortID, 0, len(ports))
	for id := range ports {
		if !a.req.Hold[id] {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(x, y plan.PortID) int {
		if goes := a.rules.ports[x] == nil; goes != (a.rules.ports[y] == nil) {
			if goes {
				return -1
			}
			return 1
		}
		return x.Compare(y)
	})
	return ids
}

// write writes some ports, and what is no port's. If the kernel refuses that, it writes halves of them, until the one
// that is refused stands alone.
func (a *run) write(ctx context.Context, ids []plan.PortID) error {
	d := &a.delta
	a.known.collect(d, a.rules, ids)
	if err := a.readRetiring(ctx, ids); err != nil {
		return err
	}
	err := a.send(ctx, d, func() {
		for _, id := range ids {
			a.counters.retire(id, a.known.ports[id], a.rules.ports[id])
		}
		a.known.advance(d, a.rules, ids)
	})
	switch {
	case err == nil || !isRefusal(err):
		return err
	case isStale(err) && (!a.fresh || !a.blind && a.meddled(ctx)):
		return err // it is not as we thought, so it is to be read first
	case len(ids) == 0:
		return err
	case !a.apart:
		// What is no port's must not be taken for the fault of one.
		if err := a.write(ctx, nil); err != nil {
			return err
		}
		a.apart = true
		return a.write(ctx, ids)
	case len(ids) == 1 && isTooLarge(err):
		a.rules.markDirty(dirt{table: true}) // which may take several transactions
		return err
	case len(ids) == 1:
		a.refuse(ids[0], nameError(ids[0], err))
		return nil
	}
	if err := a.write(ctx, ids[:len(ids)/2]); err != nil {
		return err
	}
	return a.write(ctx, ids[len(ids)/2:])
}

func (a *run) refuse(id plan.PortID, err error) {
	if a.result.Refused == nil {
		a.result.Refused = map[plan.PortID]error{}
	}
	a.result.Refused[id] = err
}

// collectChains removes the chains that no list is balanced by any more, if there are many. A port that the kernel has
// not as it is wanted may need them.
func (a *run) collectChains(ctx context.Context) error {
	if len(a.req.Hold)+len(a.result.Refused) > 0 {
		return nil
	}
	if a.rules.collect(); a.known.buckets == a.rules.buckets.byNumber {
		return nil
	}
	return a.write(ctx, nil)
}

// send has the kernel take a delta. It calls taken before the last transaction: if that one fails, the kernel has what is
// wanted, and more.
func (a *run) send(ctx context.Context, d *delta, taken func()) error {
	if size := d.size(); size > 0 {
		if err := a.makeChains(ctx, d); err != nil {
			return err
		}
		a.batch.Reset()
		appendFirst(a.batch, d)
		if err := a.commit(ctx); err != nil {
			a.unmakeChains(ctx, d)
			return err
		}
		a.result.Written += size
	}
	taken()
	if !d.late() {
		return nil
	}
	a.batch.Reset()
	appendLast(a.batch, d)
	err := a.commit(ctx)
	if err != nil {
		a.doubt = max(a.doubt, shaken)
	}
	return err
}

// makeChains makes the chains that a delta leads to.
func (a *run) makeChains(ctx context.Context, d *delta) error {
	a.batch.Reset()
	appendChains(a.batch, d.newChains)
	return a.commit(ctx)
}

// unmakeChains takes back makeChains where what was to lead there was refused. If that fails the table has more than is
// known, and is to be read again.
func (a *run) unmakeChains(ctx context.Context, d *delta) {
	a.batch.Reset()
	var names []string
	for i := range d.newChains {
		names = append(names, d.newChains[i].Name)
	}
	appendRemoval(a.batch, names)
	if a.doubt == sure && a.commit(ctx) != nil {
		a.doubt = shaken
	}
}

// reload makes the table anew. If the kernel refuses something in c, the table is made without any port, and all of them
// are to be written as changes are.
func (a *run) reload(ctx context.Context, c *contents, replace bool) error {
	err := a.load(ctx, c, replace)
	if !isRefusal(err) {
		return err
	}
	without := *c
	without.ports, a.apart = nil, true
	if err := a.load(ctx, &without, true); err != nil {
		return err
	}
	all := dirt{ports: make(map[plan.PortID]struct{}, len(a.rules.ports))}
	for id := range a.rules.ports {
		all.ports[id] = struct{}{}
	}
	a.rules.markDirty(all)
	return nil
}
