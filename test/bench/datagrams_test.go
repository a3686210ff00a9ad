package bench

import (
	"errors"
	"fmt"
	"syscall"

	"sluice/internal/lab"
	"sluice/internal/testkit/crowd"
)

// window is how many datagrams are sent before the first is read: as many as any socket has room for.
const window = 32

// listenUDP is listen for UDP. What does not come in ten seconds is lost, which is an error of who reads.
func listenUDP(h *lab.Host) (fd int, err error) {
	err = h.Do(func() error {
		if fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return errors.Join(patience(fd), syscall.Bind(fd, &syscall.SockaddrInet4{Port: crowd.TargetPort}))
	})
	return fd, err
}

func patience(fd int) error {
	return syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 10})
}

// answer sends one datagram back to where it came from.
func answer(fd int) error {
	var buf [len(message)]byte
	n, from, err := syscall.Recvfrom(fd, buf[:], 0)
	for errors.Is(err, syscall.EINTR) { // as in take
		n, from, err = syscall.Recvfrom(fd, buf[:], 0)
	}
	if err != nil {
		return fmt.Errorf("no datagram came: %w", err)
	}
	return syscall.Sendto(fd, buf[:n], 0, from)
}

// asSender runs f with a socket by which a message has gone there and back.
func (w *way) asSender(f func(fd int) error) error {
	return w.asClient(syscall.SOCK_DGRAM, w.udp, func(fd int) error {
		if err := errors.Join(patience(fd), pass(fd), answer(w.datagrams), take(fd)); err != nil {
			return err
		}
		return f(fd)
	})
}

// datagrams sends them one way.
func datagrams(w *way) (values []float64, err error) {
	windows := scaled(400)
	err = w.asSender(func(fd int) error {
		elapsed, _, proxy, err := w.timed(func() error {
			for range windows {
				if err := w.pour(fd); err != nil {
					return err
				}
			}
			return nil
		})
		n := float64(windows * window)
		values = w.andProxy(n/elapsed.Seconds(), proxy.Seconds()*1e6/n)
		return err
	})
	return values, err
}

// pour passes one window.
func (w *way) pour(fd int) error {
	for range window {
		if err := pass(fd); err != nil {
			return err
		}
	}
	for range window {
		if err := take(w.datagrams); err != nil {
			return err
		}
	}
	return nil
}

// datagramTrips passes a message there and back.
func datagramTrips(w *way) (values []float64, err error) {
	err = w.asSender(func(fd int) error {
		values, err = trips(func() error { return errors.Join(pass(fd), answer(w.datagrams), take(fd)) })
		return err
	})
	return values, err
}
