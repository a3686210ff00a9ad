package plan

import (
	"cmp"
	"slices"
	"time"
)

// claim is a Service port's wish for a frontend.
type claim struct {
	kind    Kind
	created time.Time
	owner   PortID
}

// compare puts the claim that wins first. A ClusterIP was given out by the cluster, so no one's external IP takes
// it; then the older Service has it, and the name decides when both are of an age. The order depends on nothing but
// the claims, so the winner stays until it goes.
func (a claim) compare(b claim) int {
	return cmp.Or(
		boolCompare(b.kind == ClusterIP, a.kind == ClusterIP),
		compareAge(a.created, b.created),
		a.owner.Compare(b.owner),
		cmp.Compare(a.kind, b.kind),
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

// winner is who has k.
func (cs claims) winner(k Key) (claim, bool) {
	if len(cs[k]) == 0 {
		return claim{}, false
	}
	return cs[k][0], true
}
