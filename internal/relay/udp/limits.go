package udp

import (
	"container/list"
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
		instead = mine.young.oldest(func(s *session) *place { return &s.places.inShare })
	case l.n >= l.all:
		instead = l.young.oldest(func(s *session) *place { return &s.places.inAll })
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

// queue holds sessions by when they were last active, put right only when one is asked for: what is found to have been
// active since it was put there goes to the end.
type queue struct{ list list.List }

// place is a session's in a queue.
type place struct {
	at   *list.Element
	seen int64 // session.last when it was put there
}

func (q *queue) push(s *session, p *place) {
	p.at, p.seen = q.list.PushBack(s), s.last.Load()
}

func (q *queue) remove(p *place) {
	if p.at != nil {
		q.list.Remove(p.at)
		p.at = nil
	}
}

// oldest is the session that has been silent for longest; nil if there is none. Where says which of its places is here.
func (q *queue) oldest(where func(*session) *place) *session {
	for range q.list.Len() {
		s := q.list.Front().Value.(*session)
		p, last := where(s), s.last.Load()
		if p.seen == last {
			return s
		}
		p.seen = last
		q.list.MoveToBack(p.at)
	}
	if first := q.list.Front(); first != nil { // all are busy
		return first.Value.(*session)
	}
	return nil
}
