package udp

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"sluice/internal/relay/count"
	"sluice/internal/relay/hops"
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

// errSelf is the fault of an endpoint of this machine that nobody listens at: its port was free, and the kernel has given
// it to the session's socket, which would answer itself.
var errSelf = errors.New("nobody listens at the endpoint's port")

// begin makes a session that a datagram is the first of, and opens it beside the reader. Where there is no room, the
// datagram is dropped.
func (l *Listener) begin(d incoming) {
	if l.waiting.Load() >= maxWaiting {
		l.stats.drop(Backlog)
		return
	}
	s := newSession(l, d.key)
	l.mu.Lock()
	l.sessions[d.key] = s // before others can displace it
	l.mu.Unlock()
	l.count.Accept()
	instead, ok := l.engine.limits.admit(s)
	if !ok {
		l.forget(s)
		l.count.Refuse(count.Limit)
		l.stats.drop(Limit)
		return
	}
	if instead != nil {
		instead.end(Displaced)
	}
	s.send(d) // to be held
	l.waiting.Add(1)
	l.running.Go(s.open)
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
	if s.listener.engine.hops.Arrive(&s.hop, s.listener, hops.Way{Client: s.client, Local: s.to(), To: original}) {
		s.listener.target.looped()
		s.refuse(count.Loop)
		return
	}
	if s.listener.wantsHeader() {
		s.header = header(s.client, original)
	}
	s.from = from(s.local)
	if why, ok := s.find(); !ok {
		s.refuse(why)
	}
}

func (s *session) original() (netip.AddrPort, bool) {
	if ask := s.listener.target.Original; ask != nil {
		return ask(s.client, s.to())
	}
	return s.to(), true
}

// to is where the client's datagrams came in.
func (s *session) to() netip.AddrPort {
	return netip.AddrPortFrom(s.local.WithZone(""), s.listener.local.Port())
}

// find opens the session to an endpoint that this machine has a way to, and that has not refused by the time that the
// held datagrams are sent.
func (s *session) find() (why count.Reason, ok bool) {
	var tried []netip.AddrPort
	why = count.NoEndpoint
	for range maxTries {
		endpoint, ok := s.listener.target.Picker.Pick(s.client.Addr(), tried)
		if !ok {
			break
		}
		to, err := s.connect(endpoint)
		if lacking(err) {
			return count.Resources, false
		}
		if err == nil && s.start(to) {
			return 0, true
		}
		why, tried = count.Unreachable, append(tried, endpoint)
	}
	return why, false
}

// connect makes the way to an endpoint, and counts the session as one of the endpoint's if it succeeds.
func (s *session) connect(endpoint netip.AddrPort) (link, error) {
	s.listener.target.Picker.Begin(endpoint)
	to := link{endpoint: endpoint}
	err := s.listener.engine.config.In(func() (err error) {
		to.conn, err = net.DialUDP(network(endpoint.Addr()), nil, net.UDPAddrFromAddrPort(endpoint))
		return err
	})
	if err == nil {
		to.raw, err = to.conn.SyscallConn()
	}
	if err == nil && to.conn.LocalAddr().(*net.UDPAddr).AddrPort() == endpoint {
		_ = to.conn.Close() // nothing was sent by it
		err = errSelf
	}
	if err != nil {
		s.abandon(endpoint, !lacking(err))
		return to, err
	}
	s.listener.engine.hops.Open(to.port(), endpoint, &s.hop)
	return to, nil
}

func (l *link) port() uint16 { return l.conn.LocalAddr().(*net.UDPAddr).AddrPort().Port() }

// hangUp closes the way to an endpoint.
func (s *session) hangUp(l link) {
	s.listener.engine.hops.Close(l.port(), l.endpoint, &s.hop)
	_ = l.conn.Close() // nothing more is sent by it, and what it could tell is of no use
}

// abandon says that an endpoint is not the session's any more, or never was; failed: by the endpoint's fault.
func (s *session) abandon(endpoint netip.AddrPort, failed bool) {
	if failed {
		s.listener.target.Picker.Failed(endpoint)
		s.listener.count.DialFailed()
	}
	s.listener.target.Picker.End(endpoint)
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
