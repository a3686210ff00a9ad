package userspace

import (
	"context"
)

// Cleanup removes the inner mode's rules, and then has the proxy stop to listen. What it relays goes on.
func (b *Backend) Cleanup(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.deps.Rules.Cleanup(ctx); err != nil {
		return err
	}
	b.applied = nil
	for k := range b.deps.Relay.Stats().Targets {
		if !k.Direct {
			b.deps.Relay.Close(k)
		}
	}
	return nil
}
