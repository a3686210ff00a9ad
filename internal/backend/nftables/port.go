package nftables

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// port is a compiled Service port. It is never changed, so that what was written to the kernel and what is wanted are
// the same value as long as they are equal: compare pointers first. Its elements are not kept but made from the plan
// and the numbers here; see [port.elements].
type port struct {
	plan *plan.Port
	// lists are the endpoints of plan.ListCluster and plan.ListLocal; see [indexOf].
	lists [2]list
	// sources are the clients that load balancer addresses answer, none of them within another.
	sources []netip.Prefix
	// healthCheck is the port at which health is asked for, of those for ipvs; 0: none.
	healthCheck uint16
}

// list is the endpoints that one of a port's routes leads to. The zero value is a list that no route leads to.
type list struct {
	number listNumber
	bucket bucketNumber
	// slots are what a connection is given one of at random, or in turn. Nil: each endpoint has one, in their order, as it
	// is where there are no weights until endpoints come and go. See [list.at].
	slots []netip.AddrPort
	// endpoints are the plan's, sorted by address.
	endpoints []plan.Endpoint
	// affine are the endpoints' numbers, in the same order; nil without session affinity. The last one given out is
	// remembered so that it is not used again at once.
	affine     []uint16
	lastAffine uint16
	// mark is the packet mark that leads to the list's virtual server, 0 if it needs none.
	mark uint32
}

// indexOf is a list's place among a port's lists.
func indexOf(l plan.List) int { return int(l - plan.ListCluster) }

// family is the port's.
func (p *port) family() model.Family { return p.plan.ID.Family }

// leadsTo reports whether a client of any frontend is sent to l.
func leadsTo(p *plan.Port, l plan.List) bool {
	return slices.ContainsFunc(p.Frontends, func(f plan.Frontend) bool {
		routes := p.Access(f.Kind)
		return slices.ContainsFunc(routes[:], func(r plan.Route) bool { return r.Action == plan.Forward && r.List == l })
	})
}

// compilePort makes the port of a plan. Numbers and places are taken from old, the lists of the same port as it was,
// and else from the stocks; each bucket is counted as used. If a stock is exhausted, nothing stays taken.
func (s *stocks) compilePort(p *plan.Port, old [2]list) (*port, error) {
	c := &port{plan: p}
	if p.Sources != nil {
		c.sources = plan.WithoutContained(p.Sources) // sets of ranges take no two that overlap
	}
	if s.ipvs && p.HealthCheck != nil {
		c.healthCheck = p.HealthCheck.Port
	}
	for _, l := range [...]plan.List{plan.ListCluster, plan.ListLocal} {
		if !leadsTo(p, l) {
			continue
		}
		i := indexOf(l)
		err := s.compileList(&c.lists[i], p, p.Endpoints(l), &old[i])
		if err == nil && s.ipvs && needsMark(p, l) {
			err = s.markList(&c.lists[i], &old[i])
		}
		if err != nil {
			s.release(c, &port{lists: old})
			return nil, fmt.Errorf("compile %s (%s, %s): %w", p.ID, p.ID.Protocol, p.ID.Family, err)
		}
	}
	return c, nil
}

// nameError says which Service port an error is about.
func nameError(id plan.PortID, err error) error {
	return fmt.Errorf("port %s/%s %s: %w", id, id.Protocol, id.Family, err)
}

// compileList fills in now.
func (s *stocks) compileList(now *list, p *plan.Port, endpoints []plan.Endpoint, old *list) error {
	now.endpoints = endpoints
	if s.ipvs {
		now.slots, now.bucket = noSlots, bucketRoundRobin
		return s.numberList(now, old)
	}
	turns := p.Balancing == model.BalanceRoundRobin
	if turns && slices.ContainsFunc(endpoints, func(e plan.Endpoint) bool { return e.Weight != endpoints[0].Weight }) {
		now.slots = orderedSlots(old.slots, plan.Spread(endpoints))
	} else if want := plan.Repeat(endpoints); len(want) > len(endpoints) || !old.fits(want) {
		now.slots = placeSlots(old.targets(), want)
	}
	if p.Affinity > 0 && len(endpoints) <= maxAffine { // more cannot be told apart: they are balanced as if there were none
		now.numberEndpoints(old)
	}
	if err := s.numberList(now, old); err != nil {
		return err
	}
	if now.bucket = bucketRoundRobin; turns {
		return nil
	}
	b, ok := s.buckets.use(newBucket(p.ID.Family, now.slotCount(), now.affinity(p)))
	if ok { // else it has a chain of its own, as if it took turns
		now.bucket = b
	}
	return nil
}

// noSlots are those of a list that ipvs picks from.
var noSlots = []netip.AddrPort{}

// numberList gives a list the number that it had, or a new one.
func (s *stocks) numberList(now, old *list) error {
	if now.number = old.number; now.number != 0 {
		return nil
	}
	n, err := s.lists.take()
	now.number = listNumber(n)
	return err
}

// takesTurns reports whether a list has a chain of its own.
func (l *list) takesTurns() bool { return l.bucket == bucketRoundRobin && l.slotCount() > 0 }

// affinity is how long clients of a list keep their endpoint; 0: they do not.
func (l *list) affinity(p *plan.Port) time.Duration {
	if l.affine == nil {
		return 0
	}
	return p.Affinity
}

// numberEndpoints gives each endpoint the number that it had, or a new one.
func (l *list) numberEndpoints(old *list) {
	l.affine, l.lastAffine = make([]uint16, len(l.endpoints)), old.lastAffine
	for i := range l.endpoints {
		l.affine[i] = old.affineNumber(l.endpoints[i].AddrPort)
	}
	for i, n := range l.affine {
		if n == 0 {
			l.lastAffine = nextAffine(l.lastAffine, l.affine)
			l.affine[i] = l.lastAffine
		}
	}
	if slices.Equal(l.affine, old.affine) {
		l.affine = old.affine
	}
}

// affineNumber is the number of an endpoint for session affinity, 0 if it has none.
func (l *list) affineNumber(a netip.AddrPort) uint16 {
	if i, ok := l.find(a); ok && l.affine != nil {
		return l.affine[i]
	}
	return 0
}

// affineID is the number that stands for an endpoint in all lists.
func (l *list) affineID(number uint16) uint32 { return l.number.key() | uint32(number) }

// find is where an endpoint is.
func (l *list) find(a netip.AddrPort) (int, bool) {
	return slices.BinarySearchFunc(l.endpoints, a, func(e plan.Endpoint, a netip.AddrPort) int { return e.AddrPort.Compare(a) })
}

// stocks are what Service ports share: they take numbers from here and give them back.
type stocks struct {
	lists   numbers
	buckets *buckets
	marks   marks
	ipvs    bool // picks endpoints: there are no buckets then
}

// newStocks are full, but for the buckets that are known.
func newStocks(o Options, known bucketTable) stocks {
	s := stocks{
		lists: numbers{max: maxList}, ipvs: o.Deliver == DeliverIPVS,
		marks: marks{numbers: numbers{max: backend.MaxMark}, masquerade: 1 << o.MasqueradeBit},
	}
	if s.ipvs {
		known = bucketTable{}
	}
	s.buckets = newBuckets(known)
	return s
}

// release gives back what p has, except for the numbers of lists that next, which may be nil, has too.
func (s *stocks) release(p, next *port) {
	for i := range p.lists {
		l := &p.lists[i]
		if l.number == 0 {
			continue
		}
		s.buckets.drop(l.bucket)
		if next == nil || next.lists[i].number != l.number {
			s.lists.give(uint32(l.number))
		}
		if l.mark != 0 && (next == nil || next.lists[i].mark != l.mark) {
			s.marks.give(l.mark)
		}
	}
}
