package nftwalk

import (
	"fmt"
	"slices"
	"strings"

	"sluice/internal/nft"
)

// passage is a flow on its way through one rule.
type passage struct {
	rule     *nft.Rule
	at       flow // matched so far
	missed   flow // did not match: the next rule
	rejected float64
	routes   []route
	words    words
}

// route is where a verdict sends a part of the flow.
type route struct {
	verdict nft.Verdict
	flow    flow
}

// send sends packets where a verdict says.
func (p *passage) send(v nft.Verdict, s state, share float64) {
	i := slices.IndexFunc(p.routes, func(r route) bool { return r.verdict == v })
	if i < 0 {
		i = len(p.routes)
		p.routes = append(p.routes, route{verdict: v})
	}
	p.routes[i].flow.Add(s, share)
}

// take empties what matched so far.
func (p *passage) take() flow {
	f := p.at
	p.at = flow{}
	return f
}

// walkRule passes the flow through a rule. It returns what goes on with the next rule, and adds to left what goes on
// where this chain was called.
func (w *walker) walkRule(r *nft.Rule, f flow, path []string, left *flow) (next flow) {
	p := passage{rule: r, at: f}
	for _, s := range r.Statements {
		if p.at.Empty() || !w.afford(len(p.at.Parts())) {
			break
		}
		w.statement(s, &p)
	}
	if len(p.routes) > 0 || p.rejected > 0 || !p.at.Empty() {
		w.tell(&p, path)
	}
	w.rejected += p.rejected
	next = p.missed
	next.AddAll(p.at)
	for _, to := range p.routes {
		w.follow(to, path, &next, left)
	}
	return next
}

// follow goes where a verdict says.
func (w *walker) follow(to route, path []string, next, left *flow) {
	switch to.verdict.Kind {
	case nft.Accept:
		w.accepted.AddAll(to.flow)
	case nft.Drop:
		w.dropped += to.flow.Total()
	case nft.Return:
		left.AddAll(to.flow)
	case nft.Jump:
		next.AddAll(w.enter(to, path))
	case nft.Goto:
		left.AddAll(w.enter(to, path))
	default:
		next.AddAll(to.flow)
	}
}

// enter goes through another chain, and returns what it lets pass.
func (w *walker) enter(to route, path []string) flow {
	name := to.verdict.Chain
	c := w.rules.Chain(name)
	switch {
	case c == nil:
		w.fail(fmt.Sprintf("chain %s leads to chain %s, which is not there", path[len(path)-1], name))
		return to.flow
	case slices.Contains(path, name):
		w.fail(fmt.Sprintf("chain %s leads back to itself: %s → %s", name, strings.Join(path, " → "), name))
		return to.flow
	case !w.afford(jumpCost):
		return to.flow
	}
	return w.walkChain(c, to.flow, append(slices.Clip(path), name))
}

// jumpCost is the work of a jump in statements.
const jumpCost = 100
