package link

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// ErrInterrupted occurs when the kernel's tables changed during each of several attempts to read them.
var ErrInterrupted = errors.New("the kernel's tables kept changing while they were read")

// attempts is how often a dump is read before ErrInterrupted; each failure needs a change in the middle of a dump.
const attempts = 10

// Handle reaches the interfaces of one network namespace. It is safe for concurrent use. Close it when done.
type Handle struct {
	nl *netlink.Handle
	ns netns.NsHandle // netns.None for the namespace of the process
}

// Open returns a handle for the network namespace that the file descriptor ns stands for, which must stay open as
// long as the handle is in use.
func Open(ns int) (*Handle, error) {
	nl, err := netlink.NewHandleAt(netns.NsHandle(ns), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink socket in namespace: %w", err)
	}
	return &Handle{nl: nl, ns: netns.NsHandle(ns)}, nil
}

// Here returns a handle for the network namespace of the calling thread.
func Here() (*Handle, error) {
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink socket: %w", err)
	}
	return &Handle{nl: nl, ns: netns.None()}, nil
}

// Close closes the handle's sockets.
func (h *Handle) Close() {
	h.nl.Close()
}

// dump calls read until the kernel did not interrupt it.
func dump[T any](read func() ([]T, error)) ([]T, error) {
	for range attempts {
		items, err := read()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return items, err
		}
	}
	return nil, ErrInterrupted
}
