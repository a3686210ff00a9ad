package nftables

import (
	"context"
	"maps"

	"sluice/internal/nft"
	"sluice/internal/plan"
)

// counters remember what the kernel forgets: elements go with their list, or with the table.
type counters struct {
	// last is what each list had counted when it was last read, by the key of its element.
	last map[uint32]uint64
	// gone is what lists that a Service port no longer has had counted.
	gone map[plan.PortID]uint64
}

// Connections tells how many connections each Service port was given so far. It is nil before the first Apply.
func (b *Backend) Connections(ctx context.Context) (map[plan.PortID]uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		return nil, nil
	}
	if err := b.readCounts(ctx); err != nil {
		return nil, err
	}
	total := maps.Clone(b.counters.gone)
	if total == nil {
		total = make(map[plan.PortID]uint64, len(b.known.ports))
	}
	for id, p := range b.known.ports {
		n := total[id]
		for i := range p.lists {
			n += b.counters.last[p.lists[i].number.key()]
		}
		total[id] = n
	}
	return total, nil
}

// readCounts reads what each list has counted. Where the kernel has no list any more, what is known stays.
func (b *Backend) readCounts(ctx context.Context) error {
	l, err := b.readKept(ctx, setConnections)
	if err != nil {
		return err
	}
	counts := map[uint32]uint64{}
	for e := range l.elements {
		counts[listOf(e)] = e.Packets
	}
	if len(counts) > 0 {
		b.counters.last = counts
	}
	return l.err
}

// listOf is the list that an element of connections counts for, as its key.
func listOf(e *nft.Element) uint32 { return nft.NewReader(e.Key).Uint32() }

// readGoing reads what those lists have counted that a delta takes away.
func (b *Backend) readGoing(ctx context.Context, d *delta) error {
	for i := range d.remove[setConnections] {
		e, found, err := b.find(ctx, setConnections, d.remove[setConnections][i].Key)
		if err != nil {
			return err
		}
		if found && b.counters.last != nil {
			b.counters.last[listOf(&e)] = e.Packets
		} else if found {
			b.counters.last = map[uint32]uint64{listOf(&e): e.Packets}
		}
	}
	return nil
}

// retire keeps what the lists have counted that a port had and has no more. A port that goes is forgotten.
func (c *counters) retire(id plan.PortID, old, now *port) {
	if now == nil {
		delete(c.gone, id)
		return
	}
	if old == nil {
		return
	}
	for i := range old.lists {
		key := old.lists[i].number.key()
		if n := c.last[key]; n > 0 && old.lists[i].number != now.lists[i].number {
			if c.gone == nil {
				c.gone = map[plan.PortID]uint64{}
			}
			c.gone[id] += n
			delete(c.last, key)
		}
	}
}
