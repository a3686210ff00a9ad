package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sluice/internal/model"
)

// claim is a Service port's wish for a frontend.
type claim struct {
	service *model.Service
	port    uint16 // number in service.Ports
	kind    Kind
}

// owner is who wants the frontend with this key.
func (c claim) owner(k Key) PortID { return portID(c.service, int(c.port), model.FamilyOf(k.Addr)) }

// compare puts the claim that wins first. A ClusterIP was given out by the cluster, so no one's external IP takes
// it; then the older Service has it, and the name decides when both are of an age. The order depends on nothing but
// the claims, so the winner stays until it goes.
func (c claim) compare(o claim) int {
	p, q := &c.service.Ports[c.port], &o.service.Ports[o.port]
	return cmp.Or(
		boolCompare(o.kind == ClusterIP, c.kind == ClusterIP),
		compareAge(c.service.Created, o.service.Created),
		c.service.Name.Compare(o.service.Name),
		strings.Compare(p.Name, q.Name),
		cmp.Compare(p.Protocol, q.Protocol),
		cmp.Compare(c.kind, o.kind),
	)
}

// compareAge puts the older first, and the unknown last.
func compareAge(a, b time.Time) int {
	return cmp.Or(boolCompare(a.IsZero(), b.IsZero()), a.Compare(b))
}

// claims has all claims to each frontend, the winner first.
type claims map[Key][]claim

func (cs claims) add(k Key, c claim) {
	at, found := slices.BinarySearchFunc(cs[k], c, claim.compare)
	if !found {
		cs[k] = slices.Insert(cs[k], at, c)
	}
}

func (cs claims) remove(k Key, c claim) {
	at, found := slices.BinarySearchFunc(cs[k], c, claim.compare)
	if !found {
		return
	}
	if cs[k] = slices.Delete(cs[k], at, at+1); len(cs[k]) == 0 {
		delete(cs, k)
	}
}

// winner is who has k, and as what; the zero PortID if nobody has.
func (cs claims) winner(k Key) (PortID, Kind) {
	if len(cs[k]) == 0 {
		return PortID{}, 0
	}
	c := cs[k][0]
	return c.owner(k), c.kind
}
