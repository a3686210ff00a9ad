package udp

import (
	"bytes"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/internal/kernel/datagram"
	"sluice/internal/relay/count"
	"sluice/internal/relay/hops"
)

// youth is how long a session is none that can be called a stream, as in connection tracking.
const youth = 2 * time.Second

// key tells sessions of a Listener apart.
type key struct {
	client netip.AddrPort
	local  netip.Addr // that the client sends to
}

type state uint8

const (
	opening state = iota
	open
	ended
)

// session is what one client sends from one port to one address, and the answers.
type session struct {
	key
	listener *Listener
	began    int64        // in nanoseconds, as last is
	last     atomic.Int64 // a datagram, either way
	answered atomic.Bool
	stream   atomic.Bool
	places   places // of limits
	hop      hops.Hop

	header []byte // before each datagram
	from   []byte // control message of answers

	mu    sync.Mutex
	state state
	held  [][]byte // while it is opening
	link           // once it is open
}

// link is the way to an endpoint.
type link struct {
	endpoint netip.AddrPort
	conn     *net.UDPConn
	raw      syscall.RawConn
}

func newSession(l *Listener, k key) *session {
	s := &session{key: k, listener: l, began: l.engine.config.Now().UnixNano()}
	s.last.Store(s.began)
	return s
}

// start lets datagrams through to an endpoint, the held ones first. It reports false if the endpoint has left or refused by
// then, and another is to be tried.
func (s *session) start(to link) bool {
	now, left := opening, !s.listener.keeps(to.endpoint)
	if !left {
		now = s.enter(to)
	}
	if now != open {
		s.hangUp(to)
		s.abandon(to.endpoint, now == opening && !left)
		return now == ended
	}
	s.listener.running.Go(s.answers)
	if s.lost() { // it left since, and was not among the sessions that were looked at
		s.end(EndpointGone)
	}
	return true
}

// enter returns whether the session is open then, or still opening because the endpoint has refused, or has ended.
func (s *session) enter(to link) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == ended {
		return ended
	}
	s.link = to
	for len(s.held) > 0 {
		payload := s.held[0]
		if !s.forward(append(bytes.Clone(s.header), payload...), len(payload)) {
			return opening
		}
		s.held = s.held[1:]
		s.listener.engine.backlog.remove(len(payload))
	}
	s.state, s.held = open, nil
	s.listener.count.Begin()
	return open
}

// send passes a datagram of the client on, or holds it until the session is open. It reports false when the session is
// over, or the endpoint has refused.
func (s *session) send(d incoming) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case opening:
		s.hold(d.payload())
		return true
	case open:
		start := headerSize - len(s.header)
		copy(d.packet[start:], s.header)
		return s.forward(d.packet[start:headerSize+d.size], d.size)
	}
	return false
}

// forward sends one datagram, of which size bytes are the client's. It reports false if the endpoint has refused an
// earlier one: then this one was not sent.
func (s *session) forward(whole []byte, size int) bool {
	s.touch()
	err := datagram.Send(s.raw, whole)
	if ofAnother(err) {
		err = datagram.Send(s.raw, whole)
	}
	switch {
	case err == nil:
		s.listener.stats.passIn()
		s.listener.count.In(size, true)
	case refuses(err):
		return false
	default:
		s.listener.stats.drop(dropOf(err))
	}
	return true
}

// hold keeps a copy of a datagram, if there is room.
func (s *session) hold(payload []byte) {
	if len(s.held) >= maxHeld || !s.listener.engine.backlog.add(len(payload)) {
		s.listener.stats.drop(Backlog)
		return
	}
	s.held = append(s.held, bytes.Clone(payload))
}

// release lets go of what is held.
func (s *session) release() {
	for _, payload := range s.held {
		s.listener.engine.backlog.remove(len(payload))
	}
	s.held = nil
}

// answers passes on what the endpoint sends, until the session is over.
func (s *session) answers() {
	for {
		b, n, err := datagram.Receive(s.raw, s.listener.engine.buffers)
		if err == nil {
			s.answer(b[:n])
		}
		if b != nil {
			s.listener.engine.buffers.Give(b)
		}
		if err == nil || ofAnother(err) {
			continue
		}
		if refuses(err) {
			s.refused()
		}
		s.end(Closed)
		return
	}
}

func (s *session) answer(payload []byte) {
	if !s.answered.Swap(true) {
		s.listener.target.Picker.Worked(s.endpoint)
	}
	s.touch()
	if _, _, err := s.listener.socket.conn.WriteMsgUDPAddrPort(payload, s.from, s.client); err != nil {
		s.listener.stats.drop(dropOf(err))
		return
	}
	s.listener.stats.passOut()
	s.listener.count.Out(len(payload), true)
}

// touch notes that the session is not silent.
func (s *session) touch() {
	now := s.listener.engine.config.Now().UnixNano()
	s.last.Store(now)
	if now-s.began > int64(youth) && s.answered.Load() && !s.stream.Swap(true) {
		s.listener.engine.limits.settle(s)
	}
}

// lost reports whether the endpoint is none of the Listener's any more.
func (s *session) lost() bool {
	s.mu.Lock()
	endpoint, is := s.endpoint, s.state == open
	s.mu.Unlock()
	return is && !s.listener.keeps(endpoint)
}

func (s *session) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == ended
}

// refused ends a session whose endpoint has told that nobody listens there.
func (s *session) refused() {
	s.mu.Lock()
	endpoint, was := s.endpoint, s.state
	s.mu.Unlock()
	if was == open {
		s.listener.target.Picker.Failed(endpoint)
		s.end(EndpointRefused)
	}
}

// refuse ends a session that could not be opened.
func (s *session) refuse(why count.Reason) {
	s.listener.count.Refuse(why)
	s.end(NotOpened)
}

// end takes a session out of everything. Only the first call has an effect.
func (s *session) end(why Ending) {
	s.mu.Lock()
	was := s.state
	s.state = ended
	lost := len(s.held)
	s.release()
	s.mu.Unlock()
	if was == ended {
		return
	}
	l := s.listener
	l.forget(s)
	l.engine.limits.release(s)
	l.stats.dropAll(Refused, lost)
	l.stats.end(why)
	if was == open {
		s.hangUp(s.link)
		l.target.Picker.End(s.endpoint)
		l.count.End()
		l.count.Ended(time.Duration(l.engine.config.Now().UnixNano() - s.began))
	}
}
