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

// claims has all claims to each frontend.
type claims map[Key]claimants

// claimants are the winner and the others, in order. Nearly always there is one alone, which takes no memory of its own.
type claimants struct {
	first claim
	rest  []claim
}

// add enters a claim. It returns the one that won before, if there was any.
func (cs claims) add(k Key, c claim) (won claim, taken bool) {
	have, taken := cs[k]
	won = have.first
	switch {
	case !taken:
		have.first = c
	case c.compare(won) == 0:
		return won, true
	default:
		if c.compare(won) < 0 {
			have.first, c = c, won
		}
		if at, found := slices.BinarySearchFunc(have.rest, c, claim.compare); !found {
			have.rest = slices.Insert(have.rest, at, c)
		}
	}
	cs[k] = have
	return won, taken
}

// remove takes a claim back. It returns the one that won before, if there was any.
func (cs claims) remove(k Key, c claim) (won claim, taken bool) {
	have, taken := cs[k]
	won = have.first
	switch {
	case !taken:
		return won, false
	case c.compare(won) != 0:
		if at, found := slices.BinarySearchFunc(have.rest, c, claim.compare); found {
			have.rest = slices.Delete(have.rest, at, at+1)
		}
	case len(have.rest) == 0:
		delete(cs, k)
		return won, true
	default:
		have.first = have.rest[0]
		have.rest = slices.Delete(have.rest, 0, 1)
	}
	if len(have.rest) == 0 {
		have.rest = nil
	}
	cs[k] = have
	return won, true
}

// winner is who has k, and as what; the zero PortID if nobody has.
func (cs claims) winner(k Key) (PortID, Kind) {
	have, taken := cs[k]
	if !taken {
		return PortID{}, 0
	}
	return have.first.owner(k), have.first.kind
}
