package nftables

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// Socket is nf_tables in one network namespace, as an [nfnl.Conn] is.
type Socket interface {
	// Commit executes a batch as one transaction.
	Commit(ctx context.Context, batch []byte) error
	// Check tells what Commit would, and changes nothing.
	Check(ctx context.Context, batch []byte) error
	// Dump reads all objects that a request matches, Get single ones.
	Dump(ctx context.Context, kind uint16, request []byte, each func(kind uint16, data []byte) error) error
	Get(ctx context.Context, kind uint16, request []byte, each func(kind uint16, data []byte) error) error
	// Sample is Dump that goes on if something changes meanwhile: some objects may be missing then, or come twice.
	Sample(ctx context.Context, kind uint16, request []byte, each func(kind uint16, data []byte) error) error
	// Generation is the number of the present state, to which each transaction of anybody adds one.
	Generation(ctx context.Context) (uint32, error)
	// PortID tells this socket's transactions from others.
	PortID() uint32
	// Limit is the length of the longest batch.
	Limit() int
	Close() error
}

// Listener hears of the transactions of others, as an [nfnl.Listener] does.
type Listener interface {
	Receive(ctx context.Context, each func(kind uint16, port uint32, data []byte)) error
	// Pause has it miss what happens until Resume.
	Pause() error
	Resume() error
	Close() error
}

// openSocket is how a Backend reaches the kernel unless told otherwise.
func openSocket() (Socket, error) {
	conn, err := nfnl.Open()
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// listen is how a Backend hears of others unless told otherwise.
func listen(ours uint32) (Listener, error) {
	l, err := nfnl.Listen(ours)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// isLost reports whether a Listener missed something.
func isLost(err error) bool { return errors.Is(err, nfnl.ErrLost) }

// tries is how often something is read again that others changed meanwhile.
const tries = 5

// dump reads all that a request matches. What was taken in must be forgotten when begin is called, which is when others
// changed something meanwhile.
func (b *Backend) dump(ctx context.Context, kind uint16, request []byte, begin func(), each func(data []byte) error) (err error) {
	for range tries {
		begin()
		err = b.socket.Dump(ctx, kind, request, func(_ uint16, data []byte) error { return each(data) })
		if !errors.Is(err, nfnl.ErrInterrupted) {
			break
		}
	}
	return err
}

// readSet reads the elements of a set, some of them if there is an error. There are none if there is no such set.
func (b *Backend) readSet(ctx context.Context, set setID) (*listing, error) {
	l := &listing{set: set}
	kind, request := wire.ListElements(tableName, set.name())
	err := b.dump(ctx, kind, request, l.clear, l.add)
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return l, fmt.Errorf("read elements of %s: %w", set.name(), err)
	}
	return l, nil
}

// find reads one element of a set.
func (b *Backend) find(ctx context.Context, set setID, key nft.Value) (e nft.Element, found bool, err error) {
	l := listing{set: set}
	kind, request := wire.FindElement(tableName, &sets[set], key)
	err = b.socket.Get(ctx, kind, request, func(_ uint16, data []byte) error { return l.add(data) })
	if errors.Is(err, syscall.ENOENT) {
		return e, false, nil
	}
	if err != nil {
		return e, false, fmt.Errorf("read an element of %s: %w", set.name(), err)
	}
	for one := range l.elements {
		e, found = *one, true
	}
	return e, found, l.err
}

// readFrame reads what our table has besides elements, nil if there is no table.
func (b *Backend) readFrame(ctx context.Context) (*frame, error) {
	f := newFrame()
	err := b.readTables(ctx, wire.FamilyInet, f.addTable)
	if err != nil || !f.exists {
		return nil, err
	}
	kind, request := wire.ListSets(tableName)
	err = b.dump(ctx, kind, request, func() { clear(f.sets) }, func(data []byte) error {
		s, err := wire.DecodeSet(data)
		f.addSet(s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read sets of table %s: %w", tableName, err)
	}
	kind, request = wire.ListChains(wire.FamilyInet)
	err = b.dump(ctx, kind, request, func() { clear(f.chains) }, func(data []byte) error {
		c, err := wire.DecodeChain(data)
		f.addChain(c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chains: %w", err)
	}
	kind, request = wire.ListRules(wire.FamilyInet, tableName, "")
	err = b.dump(ctx, kind, request, f.forgetRules, func(data []byte) error {
		r, err := wire.DecodeRule(data)
		f.addRule(r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read rules of table %s: %w", tableName, err)
	}
	return f, nil
}

// readTables tells of the tables of a family.
func (b *Backend) readTables(ctx context.Context, family uint8, each func(wire.Table)) error {
	var found []wire.Table
	kind, request := wire.ListTables(family)
	err := b.dump(ctx, kind, request, func() { found = nil }, func(data []byte) error {
		t, err := wire.DecodeTable(data)
		found = append(found, t)
		return err
	})
	if err != nil {
		return fmt.Errorf("read tables: %w", err)
	}
	for _, t := range found {
		each(t)
	}
	return nil
}
