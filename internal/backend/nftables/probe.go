package nftables

import (
	"context"
	"fmt"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Probe tells whether this kernel can do all that the mode may need, and what it refuses if not. It has the kernel try a
// table without Services, and forget it.
func (b *Backend) Probe(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return err
	}
	b.batch.Reset()
	appendTable(b.batch, everything(b.opts))
	if err := b.socket.Check(ctx, b.batch.Finish()); err != nil {
		return fmt.Errorf("this kernel cannot do mode nftables: %w", b.explain(err))
	}
	return nil
}

// everything has every kind of rule.
func everything(opts Options) *contents {
	node := plan.Node{GuardClusterIPs: true, AnswerPing: true}
	for _, f := range model.Families {
		node.Primary[f] = f.Unspecified()
		node.Detect[f] = plan.Detector{Interface: "eth", Wildcard: true}
		node.NodePorts[f] = plan.NodePorts{All: true, Loopback: f == model.IPv4}
	}
	opts.TCPBeLiberal = false
	r := Compile(&plan.Plan{Node: node}, opts)
	if r.structure.ipvs {
		return r.contents()
	}
	for _, f := range model.Families {
		_, _ = r.buckets.use(newBucket(f, 2, 0)) // there is room
		_, _ = r.buckets.use(newBucket(f, 2, time.Hour))
	}
	return r.contents()
}
