package pick

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// DefaultClients is how many clients a Picker with affinity remembers if Config does not say.
const DefaultClients = 1 << 16

// Config is what a Picker starts with.
type Config struct {
	// Balancing is how connections are spread. [model.BalanceDefault] is in turn.
	Balancing model.Balancing
	// Affinity is how long a client that has opened no connection is remembered. 0: every connection is for itself.
	Affinity time.Duration
	// Clients is how many are remembered: the one that has been silent for longest is forgotten for one more. 0 means
	// DefaultClients.
	Clients int
	// Now is the clock.
	Now func() time.Time
	// Rand draws a number in [0, n), like [math/rand/v2.IntN]. Only BalanceRandom asks for it.
	Rand func(n int) int
}

// Picker chooses endpoints. It is safe for concurrent use. [New] makes one.
type Picker struct {
	now  func() time.Time
	rand func(int) int

	mu        sync.Mutex
	balancing model.Balancing
	endpoints map[netip.AddrPort]*endpoint // the listed, and those that are gone and still have connections
	order     order                        // of the listed that are not marked
	marks     marks                        // of the listed
	clients   clients
	round     uint64 // of Set
}

// endpoint is what is known of one endpoint.
type endpoint struct {
	addr   netip.AddrPort
	weight int
	index  int    // in the list
	round  uint64 // the Set that listed it last
	open   int    // connections

	turn turn
	mark mark
}

// New returns a Picker without endpoints.
func New(c Config) *Picker {
	if c.Clients == 0 {
		c.Clients = DefaultClients
	}
	return &Picker{
		now: c.Now, rand: c.Rand,
		balancing: c.Balancing,
		endpoints: map[netip.AddrPort]*endpoint{},
		order:     newOrder(c.Balancing, c.Rand),
		clients:   newClients(c.Affinity, c.Clients),
		round:     1, // that of endpoints which are not listed is 0
	}
}

// Set says which endpoints there are from now on, and how they are chosen. Endpoints that stay keep their place in turn,
// their clients, their marks and their open connections. Of an address that is listed twice, the first counts.
func (p *Picker) Set(list []plan.Endpoint, balancing model.Balancing, affinity time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order.clear()
	p.list(list)
	p.drop()
	if balancing != p.balancing {
		p.balancing = balancing
		p.order = newOrder(balancing, p.rand)
		for _, e := range p.endpoints {
			e.turn = turn{}
		}
	}
	p.order.fill(p.unmarked(list))
	p.clients.keepFor(affinity)
}

// list takes over what a new list says of each endpoint.
func (p *Picker) list(list []plan.Endpoint) {
	p.round++
	for i := range list {
		e := p.endpoints[list[i].AddrPort]
		if e == nil {
			e = &endpoint{addr: list[i].AddrPort}
			p.endpoints[e.addr] = e
		}
		if e.round != p.round {
			e.round, e.index, e.weight = p.round, i, max(1, int(list[i].Weight))
		}
	}
}

// drop forgets those that are no longer listed. Open connections are counted to their end, for an endpoint may come back.
func (p *Picker) drop() {
	for addr, e := range p.endpoints {
		if e.round == p.round {
			continue
		}
		p.marks.remove(e)
		*e = endpoint{addr: addr, open: e.open}
		if e.open == 0 {
			delete(p.endpoints, addr)
		}
	}
}

func (p *Picker) unmarked(list []plan.Endpoint) []*endpoint {
	out := make([]*endpoint, 0, len(list))
	for i := range list {
		if e := p.endpoints[list[i].AddrPort]; e.index == i && !e.mark.set {
			out = append(out, e)
		}
	}
	return out
}

// Pick chooses the endpoint for a new connection of client, other than those that were tried for it. It reports false if
// there is no other. Who opens the connection says so with Begin, and how it went with Worked or Failed.
func (p *Picker) Pick(client netip.Addr, tried []netip.AddrPort) (netip.AddrPort, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.forgive(now)
	e := p.faithful(client, tried, now)
	if e == nil {
		e = p.order.next(tried)
	}
	if e == nil {
		e = p.marks.next(tried)
	}
	if e == nil {
		return netip.AddrPort{}, false
	}
	p.clients.remember(client, e.addr, now)
	return e.addr, true
}

// faithful is the endpoint that client had last, if it is of use.
func (p *Picker) faithful(client netip.Addr, tried []netip.AddrPort, now time.Time) *endpoint {
	addr, ok := p.clients.find(client, now)
	if !ok || slices.Contains(tried, addr) {
		return nil
	}
	e := p.listed(addr)
	if e == nil || e.mark.set {
		return nil
	}
	return e
}

// listed is the endpoint at addr; nil if the list does not have it.
func (p *Picker) listed(addr netip.AddrPort) *endpoint {
	if e := p.endpoints[addr]; e != nil && e.round == p.round {
		return e
	}
	return nil
}

// Has reports whether addr is in the list.
func (p *Picker) Has(addr netip.AddrPort) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listed(addr) != nil
}

// Begin says that a connection to addr is being opened.
func (p *Picker) Begin(addr netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.endpoints[addr]
	if e == nil { // it went between Pick and here
		e = &endpoint{addr: addr}
		p.endpoints[addr] = e
	}
	p.count(e, 1)
}

// End says that a connection to addr, for which Begin was called, is no more.
func (p *Picker) End(addr netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.endpoints[addr]
	if e == nil {
		return
	}
	p.count(e, -1)
	if e.open == 0 && e.round != p.round {
		delete(p.endpoints, addr)
	}
}

func (p *Picker) count(e *endpoint, n int) {
	e.open += n
	if e.round == p.round && !e.mark.set {
		p.order.counted(e)
	}
}
