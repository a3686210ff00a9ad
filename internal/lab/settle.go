package lab

import (
	"context"
	"fmt"
	"time"

	"sluice/internal/kernel/link"
	"sluice/internal/kernel/netns"
)

// settling is the longest that the kernel is given for what is a matter of milliseconds.
const settling = 30 * time.Second

// settle waits until every machine, and the network, takes in packets for its IPv6 addresses, and answers who looks for
// them as neighbours.
func (l *Lab) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	for _, h := range l.hosts {
		if err := settle(ctx, h.ns); err != nil {
			return fmt.Errorf("machine %s: %w", h.Name, err)
		}
	}
	return settle(ctx, l.network.ns)
}

func settle(ctx context.Context, ns *netns.NS) error {
	h, err := link.Open(ns.Fd())
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Settle(ctx)
}
