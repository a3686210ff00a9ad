package ipvs

import (
	"context"
	"fmt"
	"sync"

	"sluice/internal/backend"
	"sluice/internal/plan"
)

// counting is what reads the counters beside an Apply.
type counting struct {
	mu      sync.Mutex
	servers Servers // nil: not yet open
	// owners are whose the virtual servers are.
	owners map[Server]plan.PortID
}

// Connections tells how many connections each Service port was given since its virtual servers were made, as of two
// seconds ago at most, which is when the kernel adds up. See [backend.Counter].
func (b *Backend) Connections(ctx context.Context) (map[plan.PortID]uint64, error) {
	c := &b.counting
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.owners) == 0 || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if c.servers == nil {
		servers, err := b.deps.Servers()
		if err != nil {
			return nil, fmt.Errorf("count connections: %w", err)
		}
		c.servers = servers
	}
	all, err := counts(c.servers)
	if err != nil {
		return nil, fmt.Errorf("count connections: %w", err)
	}
	total := map[plan.PortID]uint64{}
	for s, n := range all {
		if owner, ok := c.owners[s]; ok {
			total[owner] += n
		}
	}
	return total, nil
}

func (c *counting) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.servers == nil {
		return nil
	}
	err := c.servers.Close()
	c.servers = nil
	return err
}

// Packets tells what the rules beside have counted. See [backend.PacketCounter].
func (b *Backend) Packets(ctx context.Context) (backend.Packets, error) {
	if counter, ok := b.deps.Rules.(backend.PacketCounter); ok {
		return counter.Packets(ctx)
	}
	return backend.Packets{}, nil
}

// Rules tells of the rules beside, where they are in tables of iptables. See [backend.RuleCounter].
func (b *Backend) Rules() []backend.TableRules {
	if counter, ok := b.deps.Rules.(backend.RuleCounter); ok {
		return counter.Rules()
	}
	return nil
}
