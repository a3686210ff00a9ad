package pick

import (
	"net/netip"

	"sluice/internal/model"
)

// order is a way to choose among endpoints. What it has to know of each between two calls of clear and fill is in the
// endpoint's turn.
type order interface {
	fill(all []*endpoint) // of an empty order
	clear()
	add(e *endpoint)
	remove(e *endpoint)
	// next chooses; nil if all were tried. Choosing takes the endpoint's turn.
	next(tried []netip.AddrPort) *endpoint
	// counted says that an endpoint's open connections are more or fewer.
	counted(e *endpoint)
}

// turn is an endpoint's place in the order.
type turn struct {
	pos    int   // in the heap that it is in
	credit int64 // inTurn: how much it is behind its share
	last   int64 // leastOpen: when it was chosen
}

func newOrder(b model.Balancing, rand func(int) int) order {
	switch b {
	case model.BalanceRandom:
		return &atRandom{rand: rand}
	case model.BalanceLeastConnections:
		return &leastOpen{}
	}
	return &inTurn{}
}

// What heaps of endpoints that know their places have in common.

func swap(h []*endpoint, i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].turn.pos, h[j].turn.pos = i, j
}

func push(h *[]*endpoint, e *endpoint) {
	e.turn.pos = len(*h)
	*h = append(*h, e)
}

func pop(h *[]*endpoint) *endpoint {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
