package nftables

import "context"

// lock is a mutex that one need not wait for without end. Who has put something into the channel holds it; there is room
// for one.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) Lock() { l <- struct{}{} }

func (l lock) Unlock() { <-l }

// LockWithin is Lock, unless ctx ends first.
func (l lock) LockWithin(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
