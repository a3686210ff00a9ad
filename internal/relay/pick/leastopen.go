package pick

import (
	"container/heap"
	"net/netip"
	"slices"
)

// leastOpen chooses the endpoint with the fewest open connections for its weight; of equals, the one that was chosen
// longest ago. It is a heap.
type leastOpen struct {
	heap   []*endpoint
	chosen int64 // choices so far
}

func (l *leastOpen) fill(all []*endpoint) {
	for _, e := range all {
		l.Push(e)
	}
	heap.Init(l)
}

func (l *leastOpen) clear()             { l.heap = nil }
func (l *leastOpen) add(e *endpoint)    { heap.Push(l, e) }
func (l *leastOpen) remove(e *endpoint) { heap.Remove(l, e.turn.pos) }

func (l *leastOpen) counted(e *endpoint) { heap.Fix(l, e.turn.pos) }

func (l *leastOpen) next(tried []netip.AddrPort) (chosen *endpoint) {
	var aside []*endpoint
	for len(l.heap) > 0 && slices.Contains(tried, l.heap[0].addr) {
		aside = append(aside, heap.Pop(l).(*endpoint))
	}
	if len(l.heap) > 0 {
		chosen = l.heap[0]
		l.chosen++
		chosen.turn.last = l.chosen
		heap.Fix(l, 0)
	}
	for _, e := range aside {
		heap.Push(l, e)
	}
	return chosen
}

func (l *leastOpen) Len() int { return len(l.heap) }

func (l *leastOpen) Less(i, j int) bool {
	a, b := l.heap[i], l.heap[j]
	switch x, y := a.open*b.weight, b.open*a.weight; {
	case x != y:
		return x < y
	case a.turn.last != b.turn.last:
		return a.turn.last < b.turn.last
	}
	return a.index < b.index
}

func (l *leastOpen) Swap(i, j int) { swap(l.heap, i, j) }
func (l *leastOpen) Push(x any)    { push(&l.heap, x.(*endpoint)) }
func (l *leastOpen) Pop() any      { return pop(&l.heap) }
