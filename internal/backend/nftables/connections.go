package nftables

import (
	"context"
	"iter"
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
// It waits no longer than ctx for an Apply that is under way.
func (b *Backend) Connections(ctx context.Context) (map[plan.PortID]uint64, error) {
	if err := b.mu.LockWithin(ctx); err != nil {
		return nil, err
	}
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

// readRetiring reads what those lists have counted that some ports have and will have no more.
func (a *run) readRetiring(ctx context.Context, ids []plan.PortID) error {
	for _, id := range ids {
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

// retiring yields the lists that a port has and will have no more, unless it goes itself. Either may be nil.
func retiring(old, now *port) iter.Seq[*list] {
	return func(yield func(*list) bool) {
		if old == nil || now == nil {
			return
		}
		for i := range old.lists {
			if l := &old.lists[i]; l.number != 0 && l.number != now.lists[i].number && !yield(l) {
				return
			}
		}
	}
}

func (c *counters) note(list uint32, n uint64) {
	if c.last == nil {
		c.last = map[uint32]uint64{}
	}
	c.last[list] = n
}

// retire keeps what the lists have counted that a port had and has no more. A port that goes is forgotten.
func (c *counters) retire(id plan.PortID, old, now *port) {
	if now == nil {
		delete(c.gone, id)
	}
	for l := range retiring(old, now) {
		if c.gone == nil {
			c.gone = map[plan.PortID]uint64{}
		}
		c.gone[id] += c.last[l.number.key()]
		delete(c.last, l.number.key())
	}
}
