package nftables

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"syscall"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/plan"
)

// counting is what reads the counters beside an Apply.
type counting struct {
	mu     lock   // guards the socket, and makes one reading out of each time that somebody asks
	socket Socket // nil: not yet open
}

func (c *counting) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.socket == nil {
		return nil
	}
	err := c.socket.Close()
	c.socket = nil
	return err
}

// Connections tells how many connections each Service port was given so far. It is nil before the first Apply.
//
// The kernel is read by a socket of its own, in the network namespace of the thread that first asks. An Apply waits for
// it while it adds up alone, and it for one that is under way no longer than ctx.
func (b *Backend) Connections(ctx context.Context) (map[plan.PortID]uint64, error) {
	if err := b.counting.mu.LockWithin(ctx); err != nil {
		return nil, err
	}
	defer b.counting.mu.Unlock()
	tables, begun, err := b.beginCount(ctx)
	if err != nil || !begun {
		return nil, err
	}
	counts, err := b.sampleCounts(ctx)
	if err != nil {
		return nil, err
	}
	return b.endCount(ctx, counts, tables)
}

// beginCount has notes be taken of what goes from now on. There is nothing to count before the first Apply.
func (b *Backend) beginCount(ctx context.Context) (tables int, begun bool, err error) {
	if err := b.mu.LockWithin(ctx); err != nil {
		return 0, false, err
	}
	defer b.mu.Unlock()
	b.counters.went = map[uint32]bool{}
	return b.counters.tables, b.known != nil, nil
}

// sampleCounts reads what the lists have counted, by their keys. Those that come or go meanwhile may have others missed.
func (b *Backend) sampleCounts(ctx context.Context) (map[uint32]uint64, error) {
	c := &b.counting
	if c.socket == nil {
		socket, err := b.deps.Open()
		if err != nil {
			return nil, err
		}
		c.socket = socket
	}
	l := &listing{set: setConnections}
	kind, request := wire.ListElements(tableName, setConnections.name())
	err := c.socket.Sample(ctx, kind, request, func(_ uint16, data []byte) error { return l.add(data) })
	if err != nil && !errors.Is(err, syscall.ENOENT) && !isUnclear(err) {
		return nil, fmt.Errorf("count connections: read elements of %s: %w", setConnections.name(), err)
	}
	return l.counts(), l.err
}

// counts are those of the lists, by their keys.
func (l *listing) counts() map[uint32]uint64 {
	counts := map[uint32]uint64{}
	for e := range l.elements {
		counts[listOf(e)] = e.Packets
	}
	return counts
}

// portCount is what a Service port has had.
type portCount struct {
	id plan.PortID
	n  uint64
}

// endCount adds up what was read.
func (b *Backend) endCount(ctx context.Context, counts map[uint32]uint64, tables int) (map[plan.PortID]uint64, error) {
	all, err := b.addUp(ctx, counts, tables)
	if all == nil {
		return nil, err
	}
	total := make(map[plan.PortID]uint64, len(all))
	for _, p := range all {
		total[p.id] = p.n
	}
	return total, nil
}

// addUp does as little as it can, since an Apply waits for it.
func (b *Backend) addUp(ctx context.Context, counts map[uint32]uint64, tables int) (all []portCount, err error) {
	if err := b.mu.LockWithin(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if b.known == nil {
		return nil, nil
	}
	b.counters.take(counts, tables)
	all = make([]portCount, 0, len(b.known.ports))
	for id, p := range b.known.ports {
		all = append(all, portCount{id, b.counters.of(id, p)})
	}
	return all, nil
}

// readCounts reads what each list has counted, before the table is made anew.
func (b *Backend) readCounts(ctx context.Context) error {
	l, err := b.readKept(ctx, setConnections)
	if err != nil {
		return err
	}
	b.counters.tables++
	if counts := l.counts(); len(counts) > 0 {
		b.counters.last = counts
	}
	return l.err
}

// listOf is the list that an element of connections counts for, as its key.
func listOf(e *nft.Element) uint32 { return nft.NewReader(e.Key).Uint32() }

// readRetiring reads what those lists have counted that some ports have and will have no more.
func (a *run) readRetiring(ctx context.Context, ids []plan.PortID) error {
	for _, id := range ids {
		if a.rules.ports[id] == nil {
			continue // what it has had is forgotten
		}
		for l := range retiring(a.known.ports[id], a.rules.ports[id]) {
			e, found, err := a.find(ctx, setConnections, nft.Value{}.Uint32(l.number.key()))
			if err != nil {
				return err
			}
			if found {
				a.counters.note(l.number.key(), e.Packets)
			}
		}
	}
	return nil
}

// retiring yields the lists that a port has and will have no more. Either may be nil.
func retiring(old, now *port) iter.Seq[*list] {
	return func(yield func(*list) bool) {
		if old == nil {
			return
		}
		for i := range old.lists {
			l := &old.lists[i]
			if stays := now != nil && l.number == now.lists[i].number; l.number != 0 && !stays && !yield(l) {
				return
			}
		}
	}
}
