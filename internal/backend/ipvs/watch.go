package ipvs

import (
	"context"
	"time"

	"sluice/internal/backend"
)

// drainPeriod is how often virtual servers are looked at that have something to drain.
const drainPeriod = 5 * time.Second

// Watch calls changed when the rules beside were changed by others, or when something that drains has lost its last
// connection: the next Apply takes it away. What others do to virtual servers the kernel does not tell; an Apply with
// Recheck finds it. See [backend.Watcher].
func (b *Backend) Watch(ctx context.Context, changed func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var ended chan error // nil: the rules are not watched
	if w, ok := b.deps.Rules.(backend.Watcher); ok {
		ended = make(chan error, 1)
		go func() { ended <- w.Watch(ctx, changed) }()
	} else {
		changed()
	}
	ticks := time.NewTicker(drainPeriod)
	defer ticks.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			ended = nil // the kernel cannot tell of rules
		case <-ticks.C:
			if b.lookAtDraining() {
				changed()
			}
		case <-ctx.Done():
			if ended == nil {
				return nil
			}
			return <-ended
		}
	}
}

// lookAtDraining reports whether something that drains has come to an end. What cannot be read is looked at by the next
// Apply, which tells why.
func (b *Backend) lookAtDraining() (found bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		return false
	}
	for s := range b.draining {
		all, err := b.destinations(nameOf(s))
		if err != nil || b.known.servers[s].ends(all) {
			b.idle[s] = struct{}{}
			found = true
		}
	}
	return found
}
