package pick

import (
	"math/bits"
	"net/netip"
	"slices"
)

// atRandom chooses each endpoint as likely as its weight says. The weights are in a Fenwick tree, by place: node i has
// the sum of the lowbit(i) places that end at i.
type atRandom struct {
	rand  func(int) int
	at    []*endpoint // by place; turn.pos is the place
	tree  []int       // from 1
	total int
}

func (r *atRandom) fill(all []*endpoint) {
	r.at = all
	r.tree = make([]int, len(all)+1)
	for i, e := range all {
		e.turn.pos = i
		r.change(e, e.weight)
	}
}

func (r *atRandom) clear() { r.at, r.tree, r.total = nil, nil, 0 }

// add gives an endpoint its place again, or one more. The tree grows by what its new last node has to sum.
func (r *atRandom) add(e *endpoint) {
	if e.turn.pos >= len(r.at) || r.at[e.turn.pos] != e {
		e.turn.pos = len(r.at)
		r.at = append(r.at, e)
		last := len(r.at)
		r.tree = append(r.tree, r.sum(last-1)-r.sum(last-lowbit(last)))
	}
	r.change(e, e.weight)
}

func (r *atRandom) remove(e *endpoint) { r.change(e, -e.weight) }
func (r *atRandom) counted(*endpoint)  {}

// change adds to the weight at an endpoint's place.
func (r *atRandom) change(e *endpoint, weight int) {
	r.total += weight
	for i := e.turn.pos + 1; i < len(r.tree); i += lowbit(i) {
		r.tree[i] += weight
	}
}

// sum is the weight of the first n places.
func (r *atRandom) sum(n int) (sum int) {
	for ; n > 0; n -= lowbit(n) {
		sum += r.tree[n]
	}
	return sum
}

func (r *atRandom) next(tried []netip.AddrPort) (chosen *endpoint) {
	var aside []*endpoint
	for r.total > 0 && chosen == nil {
		chosen = r.find(r.rand(r.total))
		if slices.Contains(tried, chosen.addr) {
			r.remove(chosen)
			aside, chosen = append(aside, chosen), nil
		}
	}
	for _, e := range aside {
		r.add(e)
	}
	return chosen
}

// find is the endpoint at which the sum of weights passes n.
func (r *atRandom) find(n int) *endpoint {
	i := 0
	for step := 1 << (bits.Len(uint(len(r.at))) - 1); step > 0; step /= 2 {
		if i+step <= len(r.at) && r.tree[i+step] <= n {
			i += step
			n -= r.tree[i]
		}
	}
	return r.at[i]
}

func lowbit(i int) int { return i & -i }
