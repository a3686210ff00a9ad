package nftables

import (
	"context"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

const (
	// loadBatch is about how many bytes a transaction has where a table is filled in several. The kernel keeps a multiple
	// of it until the transaction is over; longer ones take as long.
	loadBatch = 1 << 20
	// batchRest is more than what comes after the last look at a batch's length: an element and the end.
	batchRest = 1 << 10
)

// load makes the table anew with all that c has. One that is there is replaced in one transaction, and has chains for the
// packets that are under way just then until the next one (see [structure.laterChains]), so that none meets anything
// between the old table and the new one; what clients and counters have put into it is kept. If the socket does not take
// so much at once, as that of an ordinary user does not, or if there is no table, there are several transactions, of which
// the last ones lead packets to what the others have put there.
func (a *run) load(ctx context.Context, c *contents, replace bool) (err error) {
	l := loader{run: a, replace: replace, refs: newReferences(c), limit: min(loadBatch, a.socket.Limit()-batchRest)}
	if replace {
		l.limit = a.socket.Limit() - batchRest
		if err := a.readCounts(ctx); err != nil {
			return err
		}
	}
	defer func() { a.batch = wire.NewBatch(tableName) }() // the memory of this one is not needed again
	if err := a.deafly(ctx, func() error { return l.load(ctx, c) }); err != nil {
		return err
	}
	was := a.known
	a.known = writtenAll(c, l.refs)
	if was != nil {
		for id, old := range was.ports {
			a.counters.retire(id, old, a.known.ports[id])
		}
	}
	a.result.Written += l.count
	return nil
}

// loader fills a table.
type loader struct {
	*run
	replace bool
	limit   int
	refs    references
	count   int
	// clients are the entries of session affinity, read before anything is written.
	clients [2]*listing
	read    bool
}

func (l *loader) load(ctx context.Context, c *contents) error {
	l.batch.Reset()
	l.batch.Grow(min(l.limit+batchRest, c.bytes())) // to grow as needed would copy all of it again and again
	appendTable(l.batch, c)
	if l.replace {
		appendLater(l.batch, c)
	}
	for set := range setCount {
		for e := range c.elements(set, l.refs) {
			if set == setConnections {
				e.Packets = l.counters.last[listOf(e)]
			}
			if err := l.add(ctx, set, e); err != nil {
				return err
			}
		}
	}
	if err := l.readClients(ctx); err != nil {
		return err
	}
	for f := range l.clients {
		if !c.structure.has(setAffinity) {
			break // who picks endpoints now knows nothing of them
		}
		for e := range l.clients[f].elements {
			if err := l.add(ctx, setAffinity+setID(f), e); err != nil {
				return err
			}
		}
	}
	if err := l.commit(ctx); err != nil || !l.replace {
		return err
	}
	l.removeLater(ctx, c)
	return nil
}

func (l *loader) add(ctx context.Context, set setID, e *nft.Element) error {
	if l.batch.Len() > l.limit {
		if err := l.readClients(ctx); err != nil {
			return err
		}
		if err := l.commit(ctx); err != nil {
			return err
		}
		l.batch.Reset()
	}
	l.count++
	l.batch.AddElement(&sets[set], e)
	return nil
}

// readClients reads them once, as late as possible: those that come before the table is replaced are lost.
func (l *loader) readClients(ctx context.Context) (err error) {
	if l.read {
		return nil
	}
	l.read = true
	for f := range l.clients {
		if l.clients[f], err = l.readKept(ctx, setAffinity+setID(f)); err != nil {
			return err
		}
	}
	return nil
}

// readKept reads as much as can be had of what it would be a pity to lose.
func (b *Backend) readKept(ctx context.Context, set setID) (*listing, error) {
	l, err := b.readSet(ctx, set)
	if isUnclear(err) {
		err = nil
	}
	return l, err
}

// bytes is about how many there are in a batch of all elements.
func (c *contents) bytes() int {
	const table, element = 64 << 10, 64
	n := 0
	for _, p := range c.ports {
		n += 2*len(p.plan.Frontends) + p.lists[0].slotCount() + p.lists[1].slotCount() + len(p.lists[0].endpoints) + 1
	}
	return table + n*element
}
