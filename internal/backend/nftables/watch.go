package nftables

import (
	"context"
	"errors"

	"sluice/internal/nft/wire"
)

// Watch has the kernel tell of the transactions of others, and calls changed when one touches our table. See
// [backend.Watcher].
func (b *Backend) Watch(ctx context.Context, changed func()) (err error) {
	l, err := b.listen(changed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.unlisten(l)) }()
	changed()
	touched := false
	for {
		over := false
		err := l.Receive(ctx, func(kind uint16, _ uint32, data []byte) {
			touched = b.drift.hear(kind, data) || touched
			over = over || kind == wire.NewGen
		})
		switch {
		case isLost(err):
			b.drift.lose()
			touched, over = true, true
		case err != nil:
			return err
		}
		// A large transaction is heard of in parts, and a look at half of it would have to be repeated.
		if touched && over {
			touched = false
			changed()
		}
	}
}

// listen begins before the next Apply reads anything, so that nothing happens in between.
func (b *Backend) listen(changed func()) (Listener, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return nil, err
	}
	l, err := b.deps.Listen(b.socket.PortID())
	if err != nil {
		return nil, err
	}
	b.listener, b.changed = l, changed
	b.drift.begin()
	return l, nil
}

func (b *Backend) unlisten(l Listener) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listener = nil
	b.drift.end()
	return l.Close()
}
