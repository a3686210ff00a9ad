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

	shiftBucket = 2
	shiftList   = 12

	maxBucket = maskBucket >> shiftBucket
	maxList   = maskList >> shiftList
)

// masquerade says whose source address is rewritten.
type masquerade uint8

const (
	masqueradeNobody masquerade = iota
	masqueradeNoPods            // whoever is not known to be a pod
	masqueradeAll
	masqueradeNode // this node's own processes
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

func (r route) list() listNumber       { return listNumber(r >> shiftList) }
func (r route) bucket() bucketNumber   { return bucketNumber(uint32(r) & maskBucket >> shiftBucket) }
func (r route) masquerade() masquerade { return masquerade(uint32(r) & maskMasquerade) }

// value is the route as it is in maps.
func (r route) value() nft.Value { return nft.Value{}.Uint32(uint32(r)) }

// routes are those of a frontend: outside is for clients outside, where they fare differently from pods and this node.
type routes struct {
	main, outside route
	differ        bool
}

// routes turns what the plan says of a kind of frontend into numbers.
func (p *port) routes(a plan.Access) (rs routes) {
	pod, host, outside := a[plan.ClientPod], a[plan.ClientHost], a[plan.ClientOutside]
	rs.main = p.route(pod, whose(pod, host, outside))
	if !sameRoute(host, outside) {
		rs.differ = true
		rs.outside = p.route(outside, whose(outside, outside, outside))
	}
	return rs
}

// whose source is rewritten, of those who come by the route of pods.
func whose(pod, host, outside plan.Route) masquerade {
	switch {
	case pod.Masquerade:
		return masqueradeAll
	case !host.Masquerade:
		return masqueradeNobody
	case sameRoute(host, outside):
		return masqueradeNoPods
	}
	return masqueradeNode
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
		return newRoute(0, bucketDrop, masqueradeNobody)
	}
	return newRoute(0, bucketReject, masqueradeNobody)
}
