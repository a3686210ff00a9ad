package nftables

import (
	"context"

	"sluice/internal/kernel/nfnl"
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
	// Generation is the number of the present state, to which each transaction of anybody adds one.
	Generation(ctx context.Context) (uint32, error)
	// PortID tells this socket's transactions from others.
	PortID() uint32
	// Limit is the length of the longest batch.
	Limit() int
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
