package nfnl

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// socket is a netlink socket of netfilter. It reads and writes the caller's buffers, where package netlink would copy
// and allocate for each message.
type socket struct {
	*netlink.Conn
	raw    syscall.RawConn
	closed atomic.Bool
}

func dial() (*socket, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &socket{Conn: conn, raw: raw}, nil
}

// close ends the socket. Who is waiting in receive returns with os.ErrClosed.
func (s *socket) close() error {
	if s.closed.Swap(true) {
		return os.ErrClosed
	}
	return s.Close()
}

// send sends all of b to the kernel, in one system call.
func (s *socket) send(b []byte) error {
	var err error
	// An unconnected netlink socket writes to the kernel.
	if rawErr := s.raw.Write(func(fd uintptr) bool {
		_, err = unix.Write(int(fd), b)
		return true
	}); rawErr != nil {
		return s.ended(rawErr)
	}
	return os.NewSyscallError("write", err)
}

// receive reads one datagram. If there is none it waits, or returns EAGAIN.
func (s *socket) receive(buf []byte, wait bool) (n int, err error) {
	rawErr := s.raw.Read(func(fd uintptr) bool {
		n, err = unix.Read(int(fd), buf)
		return !wait || err != unix.EAGAIN
	})
	switch {
	case rawErr != nil:
		return 0, s.ended(rawErr)
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == len(buf): // a datagram that fills the buffer may have been cut
		return 0, fmt.Errorf("datagram of %d bytes or more: %w", n, errMalformed)
	}
	return n, nil
}

// ended says why a system call was not made: runtime errors for a closed descriptor match nothing that is exported.
func (s *socket) ended(err error) error {
	if s.closed.Load() {
		return os.ErrClosed
	}
	return err
}
