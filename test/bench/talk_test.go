package bench

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"sluice/internal/lab"
	"sluice/internal/testkit/crowd"
)

// message is what a client sends and gets back.
const message = "sixteen bytes ok"

// talk connects from the namespace of the calling thread, sends a message, has it sent back by who listens, reads it and
// closes. Both ends are one thread, so that no time is that of waking one up; what is left is the way of the packets, all
// of which the kernel walks within the call that sends them.
func talk(to netip.AddrPort, listener int) (connect, whole time.Duration, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, syscall.Close(fd)) }()
	// A reset at the end leaves nothing behind that would fill the ports.
	if err := syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1}); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		return 0, 0, fmt.Errorf("connect: %w", err)
	}
	connect = time.Since(begin)
	if err := pass(fd); err != nil {
		return 0, 0, err
	}
	if err := reply(listener); err != nil {
		return 0, 0, err
	}
	if err := take(fd); err != nil {
		return 0, 0, err
	}
	return connect, time.Since(begin), nil
}

// reply serves one connection.
func reply(listener int) error {
	conn, _, err := syscall.Accept(listener)
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	return errors.Join(take(conn), pass(conn), syscall.Close(conn))
}

func pass(fd int) error {
	_, err := syscall.Write(fd, []byte(message))
	return err
}

func take(fd int) error {
	var buf [len(message)]byte
	n, err := syscall.Read(fd, buf[:])
	for errors.Is(err, syscall.EINTR) { // where there is a timeout, no signal goes unnoticed
		n, err = syscall.Read(fd, buf[:])
	}
	if err == nil && string(buf[:n]) != message {
		err = fmt.Errorf("read %q", buf[:n])
	}
	return err
}

// listen listens on a host.
func listen(h *lab.Host) (fd int, err error) {
	err = h.Do(func() error {
		if fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: crowd.TargetPort}); err != nil {
			return err
		}
		return syscall.Listen(fd, 128)
	})
	return fd, err
}
