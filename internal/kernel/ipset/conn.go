package ipset

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Conn is a socket to the sets of one network namespace. It is not safe for concurrent use.
type Conn struct{ sock *netlink.Conn }

// Open makes a Conn to the network namespace of the calling thread.
func Open() (*Conn, error) {
	sock, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, fmt.Errorf("open a socket to ipset: %w", err)
	}
	return &Conn{sock}, nil
}

// Close ends it.
func (c *Conn) Close() error { return c.sock.Close() }

// Create makes an empty set. One that is there already stays, with its entries; if it is of another type or size the
// error is [ErrExists].
func (c *Conn) Create(h Header) error {
	_, err := c.request(nl.IPSET_CMD_CREATE, h.Name, h.encode)
	return wrap("create", h.Name, err)
}

// Destroy removes a set. While rules name it the error is [ErrInUse].
func (c *Conn) Destroy(name string) error {
	_, err := c.request(nl.IPSET_CMD_DESTROY, name, nil)
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return wrap("destroy", name, err)
}

// Swap gives two sets of one type each other's name, so that rules see the other's entries from one packet to the next.
func (c *Conn) Swap(a, b string) error {
	_, err := c.request(nl.IPSET_CMD_SWAP, a, func(e *netlink.AttributeEncoder) error {
		e.String(nl.IPSET_ATTR_SETNAME2, b)
		return nil
	})
	return wrap("swap", a, err)
}

// batch is how many entries go into one message. The attribute that holds them is at most 64 KiB long.
const batch = 256

// Add adds entries, in order. One that is there gets the new mark. Those before one that is refused stay.
func (c *Conn) Add(set string, items []Item) error { return c.change(nl.IPSET_CMD_ADD, set, items) }

// Delete removes entries, in order. Marks do not matter.
func (c *Conn) Delete(set string, entries []Entry) error {
	items := make([]Item, len(entries))
	for i, e := range entries {
		items[i].Entry = e
	}
	return c.change(nl.IPSET_CMD_DEL, set, items)
}

// change writes many entries at once. Where the kernel refuses some it does not say which in a way that the socket
// passes on, so that they are tried one by one.
func (c *Conn) change(command uint16, set string, items []Item) error {
	op := map[uint16]string{nl.IPSET_CMD_ADD: "add to", nl.IPSET_CMD_DEL: "delete from"}[command]
	for len(items) > 0 {
		n := min(batch, len(items))
		if err := c.send(command, set, items[:n]); err != nil {
			if n == 1 {
				return &Error{Op: op, Set: set, Entry: items[0].String(), Err: explain(err)}
			}
			for i := range items[:n] {
				if err := c.change(command, set, items[i:i+1]); err != nil {
					return err
				}
			}
		}
		items = items[n:]
	}
	return nil
}

func (c *Conn) send(command uint16, set string, items []Item) error {
	_, err := c.request(command, set, func(e *netlink.AttributeEncoder) error {
		e.Uint32(nl.IPSET_ATTR_LINENO|netlink.NetByteOrder, 0)
		e.Nested(nl.IPSET_ATTR_ADT, func(all *netlink.AttributeEncoder) error {
			for _, i := range items {
				all.Nested(nl.IPSET_ATTR_DATA, i.encode)
			}
			return nil
		})
		return nil
	})
	return err
}

// request asks for something that has to do with one set; "" is all of them.
func (c *Conn) request(command uint16, set string, more func(*netlink.AttributeEncoder) error) ([]netlink.Message, error) {
	if len(set) > MaxName {
		return nil, syscall.ENAMETOOLONG
	}
	e := newEncoder()
	e.Uint8(nl.IPSET_ATTR_PROTOCOL, nl.IPSET_PROTOCOL)
	if set != "" {
		e.String(nl.IPSET_ATTR_SETNAME, set)
	}
	if more != nil {
		if err := more(e); err != nil {
			return nil, err
		}
	}
	data, err := e.Encode()
	if err != nil {
		return nil, err
	}
	flags := netlink.Request | netlink.Acknowledge
	if command == nl.IPSET_CMD_LIST {
		flags = netlink.Request | netlink.Dump
	}
	return c.sock.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_IPSET<<8 | command), Flags: flags},
		Data:   append([]byte{unix.AF_INET, unix.NFNETLINK_V0, 0, 0}, data...),
	})
}
