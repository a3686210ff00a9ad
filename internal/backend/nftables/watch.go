package nftables

import (
	"context"
	"errors"
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
	for {
		touched := false
		err := l.Receive(ctx, func(kind uint16, _ uint32, data []byte) {
			touched = b.drift.hear(kind, data) || touched
		})
		switch {
		case isLost(err):
			b.drift.lose()
			touched = true
		case err != nil:
			return err
		}
		if touched {
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
