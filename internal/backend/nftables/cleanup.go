package nftables

import "context"

// Cleanup removes our table.
func (b *Backend) Cleanup(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.open(); err != nil {
		return err
	}
	b.known = nil
	b.batch.Reset()
	b.batch.AddTable(ourTable)
	b.batch.DeleteTable()
	return b.commit(ctx)
}
