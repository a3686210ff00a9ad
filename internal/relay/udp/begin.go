package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"sluice/internal/relay/count"
)

const (
	// maxWaiting is how many sessions of one Listener are being opened at a time: what a flood keeps others waiting for.
	maxWaiting = 128
	// maxHeld is how many datagrams a session holds until it is open, and maxHeldBytes what all hold together.
	maxHeld      = 16
	maxHeldBytes = 8 << 20
	// maxTries is how many endpoints are tried for a session. A try fails only where this machine has no way to them.
	maxTries = 4
)

// backlog is what sessions that are being opened hold, in bytes.
type backlog struct{ held atomic.Int64 }

// add reports whether there was room.
func (b *backlog) add(size int) bool {
	if b.held.Add(int64(size)) <= maxHeldBytes {
		return true
	}
	b.remove(size)
	return false
}

func (b *backlog) remove(size int) { b.held.Add(-int64(size)) }

// begin makes a session, and opens it beside the reader.
func (l *Listener) begin(k key) *session {
	if l.waiting.Load() >= maxWaiting {
		l.stats.drop(Backlog)
		return nil
	}
	s := newSession(l, k)
	l.mu.Lock()
	l.sessions[k] = s // before others can displace it
	l.mu.Unlock()
	l.count.Accept()
	instead, ok := l.engine.limits.admit(s)
	if !ok {
		l.forget(s)
		l.count.Refuse(count.Limit)
		l.stats.drop(Limit)
		return nil
	}
	if instead != nil {
		instead.end(Displaced)
	}
	l.waiting.Add(1)
	l.running.Go(s.open)
	return s
}

// open finds an endpoint and makes the socket to it. What the client has sent by then follows.
func (s *session) open() {
	defer s.listener.waiting.Add(-1)
	s.listener.engine.openers <- struct{}{}
	defer func() { <-s.listener.engine.openers }()
	if s.over() {
		return
	}
	original, ok := s.original()
	if !ok {
		s.refuse(count.NotRedirected)
		return
	}
	conn, endpoint, err := s.dial()
	var no refusal
	if errors.As(err, &no) {
		s.refuse(no.reason)
		return
	}
	s.start(conn, endpoint, original)
}

func (s *session) original() (netip.AddrPort, bool) {
	local := netip.AddrPortFrom(s.local.WithZone(""), s.listener.local.Port())
	if ask := s.listener.target.Original; ask != nil {
		return ask(s.client, local)
	}
	return local, true
}

// refusal is why a session was not opened.
type refusal struct {
	reason count.Reason
	err    error
}

func (r refusal) Error() string { return fmt.Sprintf("%s: %v", r.reason, r.err) }
func (r refusal) Unwrap() error { return r.err }

// dial makes a socket to an endpoint that this machine has a way to. Its error is a refusal.
func (s *session) dial() (*net.UDPConn, netip.AddrPort, error) {
	var tried []netip.AddrPort
	var last error
	for range maxTries {
		endpoint, ok := s.listener.target.Picker.Pick(s.client.Addr(), tried)
		if !ok {
			break
		}
		conn, err := s.connect(endpoint)
		switch {
		case err == nil:
			return conn, endpoint, nil
		case lacking(err):
			return nil, endpoint, refusal{count.Resources, err}
		}
		last, tried = err, append(tried, endpoint)
	}
	if last == nil {
		return nil, netip.AddrPort{}, refusal{count.NoEndpoint, nil}
	}
	return nil, netip.AddrPort{}, refusal{count.Unreachable, last}
}

// connect counts the session as one of the endpoint's, if it succeeds.
func (s *session) connect(endpoint netip.AddrPort) (conn *net.UDPConn, err error) {
	t := &s.listener.target
	t.Picker.Begin(endpoint)
	err = s.listener.engine.config.In(func() error {
		conn, err = net.DialUDP(network(endpoint.Addr()), nil, net.UDPAddrFromAddrPort(endpoint))
		return err
	})
	if err == nil {
		return conn, nil
	}
	t.Picker.End(endpoint)
	if !lacking(err) {
		t.Picker.Failed(endpoint)
		s.listener.count.DialFailed()
	}
	return nil, err
}

// lacking reports that this machine has run out of something, which is no fault of the endpoint's.
func lacking(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
