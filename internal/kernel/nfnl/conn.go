package nfnl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	// A batch must be one write, and a write must fit the send buffer. The number is a limit and takes no memory.
	sendBuffer = 256 << 20

	// Thousands of refusals of one batch fit.
	receiveBuffer = 8 << 20

	// The kernel fills up to 32 KB with each part of a dump if it has seen a buffer that large, and each part begins
	// with a walk over all that was sent before.
	datagramLen = 64 << 10
)

// Conn commits to nf_tables and reads from it, in one network namespace. It is for one goroutine at a time; only Close
// may be called from another.
type Conn struct {
	socket *socket
	limit  int
	seq    uint32
	out    []byte // the request last sent
	in     []byte // the datagram last read
	unread bool   // answers to the last request may still come
}

// Open opens a socket to nf_tables in the network namespace of the calling thread. The Conn stays there, whichever
// thread uses it later.
func Open() (*Conn, error) { return open(sendBuffer) }

func open(sendBuffer int) (*Conn, error) {
	s, err := dial()
	if err != nil {
		return nil, fmt.Errorf("open socket of nf_tables: %w", err)
	}
	c := &Conn{socket: s, in: make([]byte, datagramLen)}
	if err := c.configure(sendBuffer); err != nil {
		_ = s.close()
		return nil, fmt.Errorf("configure socket of nf_tables: %w", err)
	}
	return c, nil
}

func (c *Conn) configure(sendBuffer int) error {
	size := 0
	err := errors.Join(
		c.socket.SetOption(netlink.ExtendedAcknowledge, true),
		c.socket.SetOption(netlink.CapAcknowledge, true), // an error need not bring the refused message back
		c.socket.SetReadBuffer(receiveBuffer),
		c.socket.SetWriteBuffer(sendBuffer), // as far as the system lets an ordinary user
	)
	if err == nil {
		size, err = c.socket.WriteBuffer()
	}
	c.limit = size - sendOverhead
	return err
}

// sendOverhead is what the kernel keeps of the send buffer for itself (netlink_sendmsg).
const sendOverhead = 32

// Close closes the socket.
func (c *Conn) Close() error { return c.socket.close() }

// PortID is the number by which the kernel tells this socket from others in the network namespace.
func (c *Conn) PortID() uint32 { return c.socket.PID() }

// Limit is the length in bytes of the longest batch that Commit can send.
func (c *Conn) Limit() int { return c.limit }

// Generation returns the number of the present state of nf_tables in the network namespace. Each transaction that
// changes anything, in any table and by anybody, adds one.
func (c *Conn) Generation(ctx context.Context) (uint32, error) {
	var number uint32
	found := false
	const question = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN
	err := c.Get(ctx, question, make([]byte, nfgenmsgLen), func(_ uint16, data []byte) error {
		for kind, value, rest, ok := attribute(data[nfgenmsgLen:]); ok; kind, value, rest, ok = attribute(rest) {
			if kind == unix.NFTA_GEN_ID && len(value) == 4 {
				number, found = binary.BigEndian.Uint32(value), true
			}
		}
		return nil
	})
	if err == nil && !found {
		err = errMalformed
	}
	if err != nil {
		return 0, fmt.Errorf("read generation of nf_tables: %w", err)
	}
	return number, nil
}
