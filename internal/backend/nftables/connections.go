package nftables

import (
	"context"

	"sluice/internal/nft"
	"sluice/internal/plan"
)

// Connections tells how many connections each Service port was given so far. What a list of endpoints counted that is
// gone is not forgotten.
func (b *Backend) Connections(ctx context.Context) (map[plan.PortID]uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		return nil, nil
	}
	counts, err := b.readCounts(ctx)
	if err != nil {
		return nil, err
	}
	total := make(map[plan.PortID]uint64, len(b.known.ports))
	for id, p := range b.known.ports {
		for i := range p.lists {
			total[id] += counts[p.lists[i].number.key()]
		}
	}
	return total, nil
}

// readCounts reads what each list has counted, by the key of its element.
func (b *Backend) readCounts(ctx context.Context) (map[uint32]uint64, error) {
	l, err := b.readKept(ctx, setConnections)
	if err != nil {
		return nil, err
	}
	counts := make(map[uint32]uint64)
	for e := range l.elements {
		counts[nft.NewReader(e.Key).Uint32()] = e.Packets
	}
	return counts, l.err
}
