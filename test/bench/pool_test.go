package bench

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/internal/testkit/crowd"
)

// patient is how long a client waits for anything.
const patient = 30 * time.Second

// dialers is how many connections are opened, or asked, at a time.
const dialers = 16

// dial connects to a Service from each of the client's addresses in turn.
func dial(network string, i, service int) (net.Conn, error) {
	from := net.JoinHostPort(clientAddrs()[i%wayClients].String(), "0")
	local, err := net.Addr(nil), error(nil)
	switch network {
	case "tcp":
		local, err = net.ResolveTCPAddr(network, from)
	default:
		local, err = net.ResolveUDPAddr(network, from)
	}
	if err != nil {
		return nil, err
	}
	to := netip.AddrPortFrom(crowd.ClusterIP(service), crowd.Port)
	return (&net.Dialer{LocalAddr: local, Timeout: patient}).Dial(network, to.String())
}

// talkAll has a message go there and back by n connections, a few at a time, and returns those that were served.
func talkAll(n int, conn func(i int) (net.Conn, error)) (served []net.Conn, r replies) {
	var all errgroup.Group
	all.SetLimit(dialers)
	var mu sync.Mutex
	for i := range n {
		all.Go(func() error {
			c, err := conn(i)
			if err == nil {
				err = exchange(c)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				served = append(served, c)
				r.served++
			case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED):
				r.refused++
			default:
				fmt.Fprintln(os.Stderr, "a client:", err)
				r.silent++
			}
			return nil
		})
	}
	_ = all.Wait() // nothing of it fails
	return served, r
}

func exchange(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(patient)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, message); err != nil {
		return err
	}
	var buf [len(message)]byte
	if _, err := io.ReadFull(c, buf[:]); err != nil {
		return err
	}
	if string(buf[:]) != message {
		return fmt.Errorf("read %q", buf)
	}
	return nil
}
