package udp

import (
	"net/netip"
	"sync"
)

// limits is how many sessions there are, in all and of each client, and which is to go for another.
type limits struct {
	all, perClient int

	mu      sync.Mutex
	n       int
	young   queue // those that are no streams
	clients map[netip.Addr]*share
}

// share is what one client has.
type share struct {
	n     int
	young queue
}

// places are a session's in the queues, guarded by the limits.
type places struct {
	counted bool
	client  *share
	inAll   place
	inShare place
}

func newLimits(all, perClient int) *limits {
	return &limits{all: all, perClient: perClient, clients: map[netip.Addr]*share{}}
}

func (l *limits) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// admit counts a new session, if there is room or can be made: by the end of the session that it returns, which is not
// counted any more.
func (l *limits) admit(s *session) (instead *session, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	client := s.client.Addr()
	mine := l.clients[client]
	switch {
	case mine != nil && mine.n >= l.perClient:
		instead = mine.young.oldest()
	case l.n >= l.all:
		instead = l.young.oldest()
	default:
		l.count(s)
		return nil, true
	}
	if instead == nil {
		return nil, false
	}
	l.drop(instead)
	l.count(s)
	return instead, true
}

func (l *limits) count(s *session) {
	client := s.client.Addr()
	mine := l.clients[client]
	if mine == nil {
		mine = &share{}
		l.clients[client] = mine
	}
	l.n++
	mine.n++
	s.places = places{counted: true, client: mine}
	l.young.push(s, &s.places.inAll)
	mine.young.push(s, &s.places.inShare)
}

// release takes a session out of the count, once.
func (l *limits) release(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.places.counted {
		l.drop(s)
	}
}

func (l *limits) drop(s *session) {
	mine := s.places.client
	l.leaveQueues(s)
	s.places.counted = false
	l.n--
	if mine.n--; mine.n == 0 {
		delete(l.clients, s.client.Addr())
	}
}

// settle makes a session stay when others are to go.
func (l *limits) settle(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.places.counted {
		l.leaveQueues(s)
	}
}

func (l *limits) leaveQueues(s *session) {
	l.young.remove(&s.places.inAll)
	s.places.client.young.remove(&s.places.inShare)
}
