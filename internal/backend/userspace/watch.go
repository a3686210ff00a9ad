package userspace

import (
	"context"
	"io"

	"sluice/internal/backend"
)

// Watch listens for what others do to the inner mode's rules. Nobody but this process does anything to the proxy. See
// [backend.Watcher].
func (b *Backend) Watch(ctx context.Context, changed func()) error {
	if w, ok := b.deps.Rules.(backend.Watcher); ok {
		return w.Watch(ctx, changed)
	}
	return nil
}

// Close gives back what the inner mode uses. The proxy goes on.
func (b *Backend) Close() error {
	if c, ok := b.deps.Rules.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
