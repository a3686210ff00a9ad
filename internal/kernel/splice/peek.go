package splice

import "golang.org/x/sys/unix"

// Peek copies what socket fd has received into b and leaves it there; 0 is the end of the stream. With [Send] and
// [Discard] it moves bytes without a pipe, and holds none of them while it waits. It never goes past an urgent byte that it
// does not begin with (see [AtMark]).
func Peek(fd uintptr, b []byte) (int, error) {
	for {
		n, err := receive(fd, b, unix.MSG_PEEK)
		if err == unix.EAGAIN && Ready(fd) {
			continue // a signal: before an urgent byte, recv tells of it like that
		}
		return n, err
	}
}

// Discard takes as many bytes as b is long off what socket fd has received. They must be there. It does not write to b.
func Discard(fd uintptr, b []byte) error {
	for len(b) > 0 {
		n, err := receive(fd, b, unix.MSG_TRUNC)
		if err != nil && err != unix.EAGAIN { // which is a signal, as in Peek
			return err
		}
		b = b[n:]
	}
	return nil
}

// Send hands socket fd as much of b as it takes now, and returns how much that was.
func Send(fd uintptr, b []byte) (int, error) { return send(fd, b, 0) }

func send(fd uintptr, b []byte, flags int) (int, error) {
	for {
		n, err := unix.SendmsgN(int(fd), b, nil, nil, flags|unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if err == unix.EINTR {
			continue
		}
		return max(0, n), told("sendmsg", err)
	}
}

func receive(fd uintptr, b []byte, flags int) (int, error) {
	for {
		n, _, err := unix.Recvfrom(int(fd), b, flags|unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		return max(0, n), told("recvfrom", err)
	}
}
