package pick

import (
	"cmp"
	"container/heap"
	"net/netip"
	"slices"
)

// inTurn is smooth weighted round robin, in the turns of [plan.Spread]: at each step the credit of each endpoint grows
// by its weight, the one with the most is chosen, and pays the total of all weights.
//
// Endpoints of one weight are a class: their credits grow alike, so a heap keeps them in order and the step is counted
// once for all. A choice looks at the top of each class.
type inTurn struct {
	classes []*class // by weight
	step    int64    // credit in a class lacks weight×step
	total   int64    // of all weights
	scale   int64    // the total that the credits are for
}

// class is a heap of endpoints of one weight.
type class struct {
	weight int64
	heap   []*endpoint
}

func (t *inTurn) fill(all []*endpoint) {
	for _, e := range all {
		t.total += int64(e.weight)
	}
	t.rescale(all)
	for _, e := range all {
		c := t.class(e)
		c.Push(e)
	}
	for _, c := range t.classes {
		heap.Init(c)
	}
}

func (t *inTurn) clear() {
	for _, c := range t.classes {
		for _, e := range c.heap {
			e.turn.credit += c.weight * t.step
		}
	}
	t.classes, t.step, t.total = nil, 0, 0
}

func (t *inTurn) add(e *endpoint) {
	c := t.class(e)
	t.total += c.weight
	credit := min(max(e.turn.credit, -t.total), t.total) // it may be from the time of another scale
	e.turn.credit = credit - c.weight*t.step
	heap.Push(c, e)
	t.keepScale()
}

func (t *inTurn) remove(e *endpoint) {
	c := t.class(e)
	heap.Remove(c, e.turn.pos)
	e.turn.credit += c.weight * t.step
	t.total -= c.weight
	t.keepScale()
}

// keepScale brings the credits to the scale of the total when that has doubled or halved: the credits of many would
// keep few from their turns for long.
func (t *inTurn) keepScale() {
	if t.total >= t.scale/2 && t.total <= 2*t.scale {
		return
	}
	all := make([]*endpoint, 0, len(t.classes))
	for _, c := range t.classes {
		all = append(all, c.heap...)
	}
	t.clear()
	t.fill(all)
}

func (t *inTurn) rescale(all []*endpoint) {
	if t.total == t.scale || t.total == 0 {
		return
	}
	for _, e := range all {
		if t.scale != 0 {
			e.turn.credit = int64(float64(e.turn.credit) * float64(t.total) / float64(t.scale))
		}
	}
	t.scale = t.total
}

// class finds or makes the class of an endpoint.
func (t *inTurn) class(e *endpoint) *class {
	weight := int64(e.weight)
	i, ok := slices.BinarySearchFunc(t.classes, weight, func(c *class, w int64) int { return cmp.Compare(c.weight, w) })
	if !ok {
		t.classes = slices.Insert(t.classes, i, &class{weight: weight})
	}
	return t.classes[i]
}

func (t *inTurn) next(tried []netip.AddrPort) *endpoint {
	t.step++
	var aside []*endpoint
	best := t.best()
	for best != nil && slices.Contains(tried, best.heap[0].addr) {
		aside = append(aside, heap.Pop(best).(*endpoint))
		best = t.best()
	}
	var chosen *endpoint
	if best != nil {
		chosen = best.heap[0]
		chosen.turn.credit -= t.total
		heap.Fix(best, 0)
	}
	for _, e := range aside {
		heap.Push(t.class(e), e)
	}
	return chosen
}

// best is the class whose top is next; nil if there is none. Of equals it is the one that is first in the list.
func (t *inTurn) best() (best *class) {
	var most int64
	for _, c := range t.classes {
		if len(c.heap) == 0 {
			continue
		}
		credit := c.heap[0].turn.credit + c.weight*t.step
		if best == nil || credit > most || credit == most && c.heap[0].index < best.heap[0].index {
			best, most = c, credit
		}
	}
	return best
}

func (t *inTurn) counted(*endpoint) {}

func (c *class) Len() int { return len(c.heap) }

func (c *class) Less(i, j int) bool {
	a, b := c.heap[i], c.heap[j]
	return a.turn.credit > b.turn.credit || a.turn.credit == b.turn.credit && a.index < b.index
}

func (c *class) Swap(i, j int) { swap(c.heap, i, j) }
func (c *class) Push(x any)    { push(&c.heap, x.(*endpoint)) }
func (c *class) Pop() any      { return pop(&c.heap) }
