package connect

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// TCP connects from an address, or from what the kernel chooses if that is not valid, within a time. The error is a
// [net.OpError] with the kernel's reason, or with [os.ErrDeadlineExceeded].
func TCP(from, to netip.AddrPort, within time.Duration) (*net.TCPConn, error) {
	c, err := open(from, to, within)
	if err == nil {
		return c, nil
	}
	wrong := &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: err}
	if from.IsValid() {
		wrong.Source = net.TCPAddrFromAddrPort(from)
	}
	return nil, wrong
}

func open(from, to netip.AddrPort, within time.Duration) (*net.TCPConn, error) {
	family := unix.AF_INET6
	if to.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), to.String())
	defer func() { _ = f.Close() }() // what is returned has a descriptor of its own
	if err := start(fd, from, to); err != nil {
		return nil, err
	}
	if err := f.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	if err := established(f); err != nil {
		return nil, err
	}
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// start sends the first packet.
func start(fd int, from, to netip.AddrPort) error {
	if from.IsValid() {
		if err := unix.Bind(fd, sockaddr(from)); err != nil {
			return os.NewSyscallError("bind", err)
		}
	}
	if err := unix.Connect(fd, sockaddr(to)); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return os.NewSyscallError("connect", err)
	}
	return nil
}

// established waits until the connection is, or is refused. It looks before it waits: a refusal that is only noted wakes
// nobody.
func established(f *os.File) (err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	ended := c.Write(func(fd uintptr) bool {
		var refused int
		if refused, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && refused != 0 {
			err = os.NewSyscallError("connect", syscall.Errno(refused))
		}
		if err != nil {
			return true
		}
		_, peerErr := unix.Getpeername(int(fd))
		return !errors.Is(peerErr, unix.ENOTCONN)
	})
	if ended != nil {
		return ended // as it is: it says that it is a timeout
	}
	return err
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
