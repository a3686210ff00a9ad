package bench

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/internal/config"
)

// listen opens the sockets of the server.
func (w *way) listen() {
	w.Helper()
	var err error
	if w.listener, err = listen(w.lab.Host("server")); err != nil {
		w.Fatal(err)
	}
	if w.datagrams, err = listenUDP(w.lab.Host("server")); err != nil {
		w.Fatal(err)
	}
}

// asClient runs f on a thread of the client with a socket that is connected.
func (w *way) asClient(kind int, to netip.AddrPort, f func(fd int) error) error {
	return w.lab.Host("client").Do(func() (err error) {
		fd, err := syscall.Socket(syscall.AF_INET, kind|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, syscall.Close(fd)) }()
		if err := syscall.Connect(fd, &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		return f(fd)
	})
}

// bulk sends many bytes over one connection.
func bulk(w *way) ([]float64, error) {
	total := scaled(1024) << 20
	elapsed, here, proxy, err := w.timed(func() error {
		var both errgroup.Group
		both.Go(func() error { return drain(w.listener, total) })
		both.Go(func() error {
			return w.asClient(syscall.SOCK_STREAM, w.tcp, func(fd int) error { return fill(fd, total) })
		})
		return both.Wait()
	})
	gigabytes := float64(total) / 1e9
	return w.andProxy(gigabytes/elapsed.Seconds(), proxy.Seconds()/gigabytes, (here+proxy).Seconds()/gigabytes), err
}

// andProxy are figures, the last one only where there is a proxy.
func (w *way) andProxy(first, proxy float64, more ...float64) []float64 {
	values := append([]float64{first}, more...)
	if w.name == config.ModeUserspace {
		values = append(values, proxy)
	}
	return values
}

func fill(fd, total int) error {
	chunk := make([]byte, 256<<10)
	for total > 0 {
		n, err := syscall.Write(fd, chunk[:min(len(chunk), total)])
		if err != nil {
			return err
		}
		total -= n
	}
	return nil
}

// drain accepts a connection and reads to its end. It is an error if it brings more bytes or fewer.
func drain(listener, total int) error {
	conn, _, err := syscall.Accept(listener)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(conn) }() // nothing is lost with it
	chunk, got := make([]byte, 256<<10), 0
	for {
		n, err := syscall.Read(conn, chunk)
		if err != nil {
			return err
		}
		if got += n; n == 0 {
			break
		}
	}
	if got != total {
		return fmt.Errorf("%d bytes arrived, %d were sent", got, total)
	}
	return nil
}

// connections makes new ones, each by [talk], from so many threads.
func connections(clients int) func(w *way) ([]float64, error) {
	return func(w *way) ([]float64, error) {
		each := scaled(4800) / clients
		elapsed, _, proxy, err := w.timed(func() error {
			var all errgroup.Group
			for range clients {
				all.Go(func() error {
					return w.lab.Host("client").Do(func() error { return new(path{to: w.tcp}).run(w.listener, each) })
				})
			}
			return all.Wait()
		})
		n := float64(each * clients)
		return w.andProxy(n/elapsed.Seconds(), proxy.Seconds()*1e6/n), err
	}
}

// roundTrips passes a message there and back over one connection.
func roundTrips(w *way) (values []float64, err error) {
	err = w.asClient(syscall.SOCK_STREAM, w.tcp, func(fd int) error {
		if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
			return err
		}
		conn, _, err := syscall.Accept(w.listener)
		if err != nil {
			return err
		}
		defer func() { _ = syscall.Close(conn) }()
		values, err = trips(func() error { return errors.Join(pass(fd), take(conn), pass(conn), take(fd)) })
		return err
	})
	return values, err
}

// trips are the 50th and the 99th of a hundred, in microseconds.
func trips(once func() error) ([]float64, error) {
	times := make([]time.Duration, scaled(4000))
	for i := range times {
		begin := time.Now()
		if err := once(); err != nil {
			return nil, err
		}
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	at := func(percent int) float64 { return times[len(times)*percent/100].Seconds() * 1e6 }
	return []float64{at(50), at(99)}, nil
}
