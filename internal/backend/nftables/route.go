package nftables

import (
	"sluice/internal/nft"
	"sluice/internal/plan"
)

// route is the number that leads from a frontend to its endpoints. It travels in the packet's priority, which has 32
// bits and is of no use before the packet is queued:
//
//	31..12 list    the list of endpoints, unique over both families; 0: none
//	11..2  bucket  how an endpoint is picked, see [bucket]
//	1..0   whose source address is rewritten
type route uint32

// Parts of a route.
const (
	maskMasquerade uint32 = 0x3
	maskBucket     uint32 = 0xffc
	maskList       uint32 = 0xfffff000

	maskExternal uint32 = 0x2   // of masquerading: external frontends have it
	maskForward  uint32 = 0xff8 // of the bucket: those that lead to endpoints have some of it

	shiftBucket = 2
	shiftList   = 12

	maxBucket = maskBucket >> shiftBucket
	maxList   = maskList >> shiftList
)

// masquerade says whose source address is rewritten, and by the way how much else there is to ask of a packet: it is
// one of the last two for all frontends but cluster IPs.
type masquerade uint8

const (
	masqueradeNobody masquerade = iota
	masqueradeNoPods            // whoever is not known to be a pod
	masqueradeAll
	masqueradeNode // this node's own processes; clients outside have another route
)

// listNumber is the number of a list of endpoints, from 1.
type listNumber uint32

// key is the number as it is in the keys of maps: a route's without its other parts.
func (n listNumber) key() uint32 { return uint32(n) << shiftList }

// bucketNumber is the number of a bucket in a route.
type bucketNumber uint16

// key is the number as it is in the keys of the map of buckets.
func (n bucketNumber) key() uint32 { return uint32(n) << shiftBucket }

func newRoute(l listNumber, b bucketNumber, m masquerade) route {
	return route(l.key() | b.key() | uint32(m))
}

func (r route) list() listNumber { return listNumber(r >> shiftList) }

// value is the route as it is in maps.
func (r route) value() nft.Value { return nft.Value{}.Uint32(uint32(r)) }

// routes are those of a frontend: outside is for clients outside, where they fare differently from pods and this node.
type routes struct {
	main, outside route
	differ        bool
}

// routes turns what the plan says of a kind of frontend into numbers.
func (p *port) routes(k plan.Kind) (rs routes) {
	a := p.plan.Access(k)
	rs.main = p.route(a[plan.ClientPod], whose(k, a))
	if rs.differ = differ(a); rs.differ {
		rs.outside = p.route(a[plan.ClientOutside], masqueradeNobody)
	}
	return rs
}

// differ reports whether clients outside fare differently from this node, as the policy Local has it for all frontends
// but cluster IPs. They are not masqueraded then.
func differ(a plan.Access) bool { return !sameRoute(a[plan.ClientHost], a[plan.ClientOutside]) }

// whose source is rewritten, of those who come by the route of pods. An external frontend that refuses has it too, for
// source ranges to be looked at.
func whose(k plan.Kind, a plan.Access) masquerade {
	switch pod := a[plan.ClientPod]; {
	case differ(a):
		return masqueradeNode
	case k != plan.ClusterIP:
		return masqueradeAll
	case pod.Action != plan.Forward:
		return masqueradeNobody
	case pod.Masquerade:
		return masqueradeAll
	case a[plan.ClientHost].Masquerade:
		return masqueradeNoPods
	}
	return masqueradeNobody
}

func sameRoute(a, b plan.Route) bool {
	return a == b || a.Action == b.Action && a.Action != plan.Forward
}

func (p *port) route(r plan.Route, m masquerade) route {
	switch r.Action {
	case plan.Forward:
		l := &p.lists[indexOf(r.List)]
		return newRoute(l.number, l.bucket, m)
	case plan.Drop:
		return newRoute(0, bucketDrop, m)
	}
	return newRoute(0, bucketReject, m)
}
