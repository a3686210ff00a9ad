package udp

import "container/heap"

// queue has the session that has been silent for longest at hand. It is a heap by what is known of their activity, which
// is put right only when one is asked for: datagrams do not wait for it.
type queue []*place

// place is a session's in a queue, or in none.
type place struct {
	session *session // nil: none
	seen    int64    // session.last when it was last looked at
	at      int      // in the heap
}

func (q *queue) push(s *session, p *place) {
	p.session, p.seen = s, s.last.Load()
	heap.Push(q, p)
}

func (q *queue) remove(p *place) {
	if p.session != nil {
		heap.Remove(q, p.at)
		p.session = nil
	}
}

// oldest is the session that has been silent for longest; nil if there is none. What is known of a session is never later
// than the truth, so the first one of which it is the truth is the oldest.
func (q *queue) oldest() *session {
	for range q.Len() {
		first := (*q)[0]
		last := first.session.last.Load()
		if first.seen == last {
			return first.session
		}
		first.seen = last
		heap.Fix(q, 0)
	}
	if q.Len() == 0 {
		return nil
	}
	return (*q)[0].session // all are busy
}

// Len, Less, Swap, Push and Pop are for package heap.
func (q *queue) Len() int { return len(*q) }

// Less is for package heap.
func (q *queue) Less(i, j int) bool { return (*q)[i].seen < (*q)[j].seen }

// Swap is for package heap.
func (q *queue) Swap(i, j int) {
	all := *q
	all[i], all[j] = all[j], all[i]
	all[i].at, all[j].at = i, j
}

// Push is for package heap.
func (q *queue) Push(x any) {
	p := x.(*place)
	p.at = len(*q)
	*q = append(*q, p)
}

// Pop is for package heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return p
}
