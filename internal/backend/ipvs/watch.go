package ipvs

import (
	"context"
	"time"

	"sluice/internal/backend"
)

// drainPeriod is how often virtual servers are looked at that have something to drain.
const drainPeriod = 5 * time.Second

// deviceWatcher is a [Device] that tells when addresses of an interface may have changed.
type deviceWatcher interface {
	WatchAddressesOf(ctx context.Context, name string, changed func()) error
}

// Watch calls changed when others changed the rules beside or took addresses from the device, or when something that
// drains has lost its last connection: the next Apply takes it away. What others do to virtual servers the kernel does
// not tell; an Apply with Recheck finds it. See [backend.Watcher].
func (b *Backend) Watch(ctx context.Context, changed func()) error {
	ctx, stop := context.WithCancel(ctx)
	watched := b.watchDevice(ctx, changed)
	defer func() {
		stop()
		<-watched
	}()
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

// watchDevice watches the device until ctx ends, and closes ended then. Where that cannot be done, what others do there is
// found by an Apply with Recheck.
func (b *Backend) watchDevice(ctx context.Context, changed func()) (ended chan struct{}) {
	ended = make(chan struct{})
	b.mu.Lock()
	err := b.openDevice()
	w, ok := b.device.(deviceWatcher)
	b.mu.Unlock()
	if err != nil || !ok {
		close(ended)
		return ended
	}
	go func() {
		defer close(ended)
		err := w.WatchAddressesOf(ctx, DeviceName, func() {
			if b.lookAtDevice() {
				changed()
			}
		})
		if err != nil {
			b.deps.Warn(err)
		}
	}()
	return ended
}

// lookAtDevice reports whether the device lacks addresses that it was given. The next Apply reads the kernel anew then.
func (b *Backend) lookAtDevice() (lacks bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || b.device == nil {
		return false
	}
	now := newState()
	if err := b.observeDevice(now); err != nil {
		return false
	}
	for a := range b.known.addrs {
		if _, has := now.addrs[a]; !has {
			b.known = nil
			return true
		}
	}
	return false
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
