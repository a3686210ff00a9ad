package splice

import (
	"os"

	"golang.org/x/sys/unix"
)

// tcpClose is TCP_CLOSE of the kernel's tcp_states.h.
const tcpClose = 7

// Closed reports whether TCP socket fd has no connection any more. At the end of a stream this tells a reset from an
// orderly end: an error that a write has reported is not reported to reads again, which then see an end like any other.
func Closed(fd uintptr) bool {
	info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State == tcpClose
}

// Shed accepts one connection that waits at listening socket fd and resets it. EAGAIN means that none waits.
func Shed(fd uintptr) error {
	conn, _, err := unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return told("accept4", err)
	}
	// Without lingering, close sends a reset instead of an orderly end.
	err = unix.SetsockoptLinger(conn, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	_ = unix.Close(conn)
	return os.NewSyscallError("setsockopt SO_LINGER", err)
}
