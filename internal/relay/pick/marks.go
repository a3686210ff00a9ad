package pick

import (
	"container/heap"
	"container/list"
	"net/netip"
	"slices"
	"time"
)

// How long an endpoint is passed over after a failure. Each failure that follows the end of a mark doubles it.
const (
	firstMark = time.Second
	lastMark  = 30 * time.Second
)

// mark is why an endpoint is passed over.
type mark struct {
	failures int // marks since it last worked
	set      bool
	until    time.Time
	place    *list.Element // in marks.tried
	pos      int           // in marks.ending
}

// marks are the endpoints that are passed over.
type marks struct {
	tried  list.List // of *endpoint, the one that was tried longest ago first
	ending byEnd
}

func (m *marks) add(e *endpoint, now time.Time) {
	e.mark.set = true
	e.mark.until = now.Add(markFor(e.mark.failures))
	e.mark.failures++
	e.mark.place = m.tried.PushBack(e)
	heap.Push(&m.ending, e)
}

// markFor is how long an endpoint is passed over that has had so many marks.
func markFor(before int) time.Duration {
	return min(firstMark<<min(before, 10), lastMark)
}

func (m *marks) remove(e *endpoint) {
	if e.mark.set {
		heap.Remove(&m.ending, e.mark.pos)
		m.tried.Remove(e.mark.place)
		e.mark.set, e.mark.place = false, nil
	}
}

// ended removes and returns an endpoint whose mark has come to its end; nil if there is none.
func (m *marks) ended(now time.Time) *endpoint {
	if len(m.ending) == 0 || m.ending[0].mark.until.After(now) {
		return nil
	}
	e := m.ending[0]
	m.remove(e)
	return e
}

// next chooses among the marked: the one that was tried longest ago.
func (m *marks) next(tried []netip.AddrPort) *endpoint {
	for place := m.tried.Front(); place != nil; place = place.Next() {
		if e := place.Value.(*endpoint); !slices.Contains(tried, e.addr) {
			m.tried.MoveToBack(place)
			return e
		}
	}
	return nil
}

// Failed says that addr did not take a connection: it is passed over for a second, then 2, 4 and so on up to 30, each
// time that it fails again. What fails during a mark was on its way before, and does not count.
func (p *Picker) Failed(addr netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.listed(addr)
	switch {
	case e == nil:
	case e.mark.set:
		p.marks.tried.MoveToBack(e.mark.place)
	default:
		p.order.remove(e)
		p.marks.add(e, p.now())
	}
}

// Worked says that addr took a connection: it is no longer passed over.
func (p *Picker) Worked(addr netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.listed(addr)
	if e == nil || e.mark.failures == 0 {
		return
	}
	e.mark.failures = 0
	if e.mark.set {
		p.marks.remove(e)
		p.order.add(e)
	}
}

// forgive ends the marks whose time is over.
func (p *Picker) forgive(now time.Time) {
	for e := p.marks.ended(now); e != nil; e = p.marks.ended(now) {
		p.order.add(e)
	}
}

// byEnd is a heap of marked endpoints: the mark that ends first is on top.
type byEnd []*endpoint

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(i, j int) bool { return h[i].mark.until.Before(h[j].mark.until) }

func (h byEnd) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].mark.pos, h[j].mark.pos = i, j
}

func (h *byEnd) Push(x any) {
	e := x.(*endpoint)
	e.mark.pos = len(*h)
	*h = append(*h, e)
}

func (h *byEnd) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
