package datagram

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Wait returns when a datagram can be read from c, or when the kernel has an error to tell of the socket, which it
// then tells once. The datagram is left where it is.
func Wait(c syscall.RawConn) error {
	var err error
	ended := c.Read(func(fd uintptr) bool {
		// Without a look first, one that came before the poller was asked would not wake it: it tells of changes.
		_, _, err = unix.Recvfrom(int(fd), nil, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return !again(err)
	})
	return errors.Join(ended, err)
}

// Receive waits for a datagram of c and reads it into a buffer from the pool, which it holds only once there is one.
// The caller gives the buffer back, also after an error if it is not nil.
func Receive(c syscall.RawConn, pool *Buffers) (b *Buffer, n int, err error) {
	ended := c.Read(func(fd uintptr) bool {
		b = pool.Take()
		if n, err = unix.Read(int(fd), b[:]); !again(err) {
			return true
		}
		pool.Give(b)
		b = nil
		return false
	})
	return b, n, errors.Join(ended, err)
}

// Send sends b to the peer of c, at once: where the socket has no room left, the error is [syscall.EAGAIN].
func Send(c syscall.RawConn, b []byte) error {
	var err error
	ended := c.Write(func(fd uintptr) bool {
		err = unix.Send(int(fd), b, unix.MSG_DONTWAIT)
		return true
	})
	return errors.Join(ended, err)
}

// Room asks for room for so many bytes of datagrams that wait to be read. More than net.core.rmem_max needs a privilege;
// without it, there is as much as that.
func Room(c syscall.RawConn, bytes int) error {
	var err error
	ended := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes)
		if errors.Is(err, unix.EPERM) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, bytes)
		}
	})
	return errors.Join(ended, err)
}

// again reports that there is nothing yet. A call that does not wait is never interrupted.
func again(err error) bool { return errors.Is(err, unix.EAGAIN) }
