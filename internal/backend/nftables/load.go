package nftables

import "context"

const (
	// loadBatch is about how many bytes a transaction has where a table is filled in several. The kernel keeps a multiple
	// of it until the transaction is over.
	loadBatch = 4 << 20
	// batchRest is more than what comes after the last look at a batch's length: an element and the end.
	batchRest = 1 << 10
	// keepBatch is how large a batch may have become and be kept for the next one.
	keepBatch = 256 << 10
)

// load makes the table anew with all that c has. If whole is set, it does so in one transaction, so that no packet meets
// anything between the old table and the new one. That is not done if the socket does not take so much at once, as that
// of an ordinary user does not: then, as for a table that was not there before, there are several transactions, of which
// the last ones lead packets to what the others have put there.
func (b *Backend) load(ctx context.Context, c *contents, whole bool) error {
	b.known = nil
	limit := b.socket.Limit() - batchRest
	b.batch.Reset()
	appendTable(b.batch, c)
	refs := references{}
	for set := range setCount {
		for e := range c.elements(set, refs) {
			if b.batch.Len() > limit || b.batch.Len() > loadBatch && !whole {
				if err := b.commit(ctx); err != nil {
					return err
				}
				b.batch.Reset()
			}
			b.batch.AddElement(&sets[set], e)
		}
	}
	if err := b.commit(ctx); err != nil {
		return err
	}
	b.known = writtenAll(c, refs)
	return nil
}
