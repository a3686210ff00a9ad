package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"

	"sluice/internal/model"
)

// Server answers clients with its own address and theirs, as it sees them. Over TCP it sends back everything that
// follows, until the client closes.
type Server struct {
	wg sync.WaitGroup

	mu     sync.Mutex // guards the following
	closed bool
	open   map[io.Closer]struct{}
}

// Serve answers at an address and port of the host. The unspecified address stands for all of the family. Over SCTP the
// answer is an INIT ACK and no association follows.
func (h *Host) Serve(protocol model.Protocol, at ...netip.AddrPort) (*Server, error) {
	s := &Server{open: map[io.Closer]struct{}{}}
	err := h.ns.Do(func() error {
		for _, a := range at {
			if err := s.listen(protocol, a); err != nil {
				return fmt.Errorf("serve %s/%s on %s: %w", a, protocol, h.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	h.lab.keep(s)
	return s, nil
}

// ServeAll answers at a port on every address of the host, in both families.
func (h *Host) ServeAll(protocol model.Protocol, port uint16) (*Server, error) {
	return h.Serve(protocol, netip.AddrPortFrom(netip.IPv4Unspecified(), port), netip.AddrPortFrom(netip.IPv6Unspecified(), port))
}

// Close stops the server and cuts its connections. It may be called twice.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	var errs []error
	for c := range s.open {
		if err := c.Close(); !errors.Is(err, net.ErrClosed) { // a connection that ends by itself closes itself
			errs = append(errs, err)
		}
	}
	clear(s.open)
	s.mu.Unlock()
	s.wg.Wait()
	return errors.Join(errs...)
}

func (s *Server) listen(protocol model.Protocol, at netip.AddrPort) error {
	if protocol != model.TCP {
		d, err := listenDatagrams(protocol, at)
		if err != nil {
			return err
		}
		s.start(d, func() { answerAll(d, at.Port()) })
		return nil
	}
	l, err := net.ListenTCP(network("tcp", at.Addr()), net.TCPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	s.start(l, func() { s.accept(l) })
	return nil
}

// start runs f until it ends; closing c makes it end.
func (s *Server) start(c io.Closer, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close() // nobody waits for it any more
		return
	}
	s.open[c] = struct{}{}
	s.wg.Go(func() {
		f()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, c)
	})
}

func (s *Server) accept(l *net.TCPListener) {
	for {
		conn, err := l.AcceptTCP()
		if err != nil {
			return // closed
		}
		s.start(conn, func() { talk(conn) })
	}
}

// talk serves one connection. Its errors are the client's business, who sees them too.
func talk(conn *net.TCPConn) {
	defer func() { _ = conn.Close() }()
	hello := greeting(unmapped(conn.LocalAddr()), unmapped(conn.RemoteAddr()))
	if _, err := io.WriteString(conn, hello+"\n"); err == nil {
		_, _ = io.Copy(conn, conn)
	}
}

func unmapped(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// network is the name that package net has for a protocol over the address's family.
func network(protocol string, a netip.Addr) string {
	if a.Is4() {
		return protocol + "4"
	}
	return protocol + "6"
}
