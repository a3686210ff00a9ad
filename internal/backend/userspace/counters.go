package userspace

import (
	"context"
	"sync"

	"sluice/internal/backend"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/relay/count"
)

// counts remember what the proxy forgets when it stops to listen for a list.
type counts struct {
	mu sync.Mutex
	// gone is what lists had counted that a Service port does not use any more.
	gone map[plan.PortID]uint64
}

// retire keeps what lists have counted that are about to be closed. A Service port that is gone is forgotten.
func (c *counts) retire(closed []relay.Key, s relay.Stats, p *plan.Plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range closed {
		switch n := connections(s.Targets[k]); {
		case p.Ports[k.Port] == nil:
			delete(c.gone, k.Port)
		case n > 0:
			if c.gone == nil {
				c.gone = map[plan.PortID]uint64{}
			}
			c.gone[k.Port] += n
		}
	}
}

// connections are those of clients that were led to the proxy, also where it had to refuse them.
func connections(c count.Counts) uint64 { return c.Accepted - c.Refused[count.NotRedirected] }

// Connections tells how many connections the proxy has accepted for each Service port. They are not those that the inner
// mode counts, which has none to tell where it is iptables.
func (b *Backend) Connections(context.Context) (map[plan.PortID]uint64, error) {
	b.counts.mu.Lock()
	defer b.counts.mu.Unlock()
	sum := map[plan.PortID]uint64{}
	for k, c := range b.deps.Relay.Stats().Targets {
		if _, known := sum[k.Port]; !known {
			sum[k.Port] = b.counts.gone[k.Port]
		}
		sum[k.Port] += connections(c)
	}
	return sum, nil
}

// Packets tells what the inner mode's rules have counted.
func (b *Backend) Packets(ctx context.Context) (backend.Packets, error) {
	if c, ok := b.deps.Rules.(backend.PacketCounter); ok {
		return c.Packets(ctx)
	}
	return backend.Packets{}, nil
}

// Rules tells of the inner mode's tables, if it has any of iptables.
func (b *Backend) Rules() []backend.TableRules {
	if c, ok := b.deps.Rules.(backend.RuleCounter); ok {
		return c.Rules()
	}
	return nil
}
