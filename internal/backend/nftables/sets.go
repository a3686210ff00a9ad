package nftables

import (
	"time"

	"sluice/internal/model"
	"sluice/internal/nft"
)

// setID is one of the table's sets and maps. Elements are loaded in this order: the maps that lead to others come last.
// The sets themselves are made in the order of [definitions]. Of those that exist for each family the constant is IPv4's; see
// [setID.of].
type setID uint8

const (
	setHairpin setID = 2 * iota
	setEndpoints
	setAffineEndpoints
	setAffineSlots
	setAffinity
	setNodeAddresses
	setClusterIPs
	setExternalIPs
	setServiceCIDRs
	setAllowed
	setGuarded
	setMarks
	setOutside
	setOutsideNodePorts
	setServices
	setNodePorts
	setOwnAddresses
	setHealthChecks
	bothFamilies
)

// The sets for both families.
const (
	setConnections = bothFamilies + iota
	setRoundRobin
	setBuckets
	setCount
)

// of is the set of a family.
func (s setID) of(f model.Family) setID { return s + setID(f) }

// name is what nft calls the set.
func (s setID) name() string { return sets[s].Name }

// ofIPv4 is the constant of a set that exists for each family.
func (s setID) ofIPv4() setID { return s &^ 1 }

// family is that of a set which exists for each family.
func (s setID) family() model.Family { return model.Family(s & 1) }

// affinityTimeout is that of elements which name none; there are none such.
const affinityTimeout = 3 * time.Hour

// affinitySize is how many clients session affinity can remember, of each family. The kernel takes memory only for
// those that are there. What comes beyond is balanced as if there were no affinity.
const affinitySize = 1 << 18

// sets are the definitions, and shown is the order in which they are made and nft lists them. Their sizes are those of an
// almost empty table; see [sizes].
var sets, shown = defineSets()

func defineSets() (defs [setCount]nft.Set, order []setID) {
	define := func(id setID, name string, d definition) {
		d.set.Name, d.set.Comment = name, d.comment
		defs[id], order = d.set, append(order, id)
	}
	four, six := definitions(model.IPv4), definitions(model.IPv6)
	for i, d := range four {
		if d.id >= bothFamilies {
			define(d.id, d.name, d)
			continue
		}
		define(d.id.of(model.IPv4), named(d.name, model.IPv4), d)
		define(d.id.of(model.IPv6), named(d.name, model.IPv6), six[i])
	}
	return defs, order
}

// definition is a set; the family is not yet in its name.
type definition struct {
	id      setID
	name    string
	set     nft.Set
	comment string
}

// definitions are the sets of one family, and those for both, as a packet comes by them.
func definitions(f model.Family) []definition {
	fields := func(all ...nft.Field) []nft.Field { return all }
	var (
		addr     = nft.Field{Type: [...]nft.Type{model.IPv4: nft.IPv4Addr, model.IPv6: nft.IPv6Addr}[f]}
		proto    = nft.Field{Type: nft.InetProto}
		port     = nft.Field{Type: nft.InetService}
		number   = nft.Field{Type: nft.ClassID}
		frontend = fields(addr, proto, port)

		// nft has no name for the type of numgen, so these are declared by expressions.
		likeNumber = nft.Field{Type: nft.ClassID, Like: nft.Priority}
		slot       = fields(likeNumber, nft.Field{Type: nft.Integer, Like: nft.Numgen{Mod: 2}})
		target     = fields(nft.Field{Type: addr.Type, Like: daddr(f)}, nft.Field{Type: nft.InetService, Like: nft.THDport})

		nodePorts = nft.Set{Key: fields(proto, port), Data: fields(number)}
		services  = nft.Set{Key: frontend, Data: fields(number)}
		marks     = nft.Set{Key: fields(number), Data: fields(nft.Field{Type: nft.PacketMark})}
		clients   = nft.Set{
			Key: fields(number, addr), Data: fields(number), Dynamic: true, Timeout: affinityTimeout, Size: affinitySize,
		}
	)
	return []definition{
		{setServices, "services", services, "address of a Service → route"},
		{setNodeAddresses, "node-addresses", nft.Set{Key: fields(addr)}, "where node ports answer, unless everywhere"},
		{setNodePorts, "node-ports", nodePorts, "node port → route"},
		{setGuarded, "guarded", nft.Set{Key: frontend}, "load balancer addresses with source ranges"},
		{
			setAllowed, "allowed",
			nft.Set{Key: fields(addr, addr, proto, port), Interval: true},
			"source range . load balancer address",
		},
		{setOutside, "outside", services, "address of a Service → route of clients outside, if not the same (policy Local)"},
		{setOutsideNodePorts, "outside-node-ports", nodePorts, "node port → route of clients outside, if not the same (policy Local)"},
		{setMarks, "marks", marks, "list of clients outside → mark of its virtual server"},
		{setEndpoints, "endpoints", nft.Set{Key: slot, Data: target}, "list . slot → endpoint"},
		{
			setAffineSlots, "affine-slots",
			nft.Set{Key: slot, Data: fields(likeNumber)},
			"list . slot → number of an endpoint, for session affinity",
		},
		{
			setAffineEndpoints, "affine-endpoints",
			nft.Set{Key: fields(number), Data: fields(addr, port)},
			"number of an endpoint → endpoint",
		},
		{setAffinity, "affinity", clients, "list . client → number of the endpoint that it had"},
		{setConnections, "connections", nft.Set{Key: fields(number), Counter: true}, "new connections of each list"},
		{
			setRoundRobin, "round-robin",
			nft.Set{Key: fields(number), Verdicts: true},
			"list → chain of its own, since turns are counted per rule",
		},
		{setBuckets, "buckets", nft.Set{Key: fields(number), Verdicts: true}, "bucket → chain that picks a slot"},
		{setHairpin, "hairpin", nft.Set{Key: fields(addr, addr, proto, port)}, "endpoint . itself: may be sent to itself"},
		{setClusterIPs, "cluster-ips", nft.Set{Key: fields(addr)}, "what is for other ports of these is rejected (guard)"},
		{setExternalIPs, "external-ips", nft.Set{Key: fields(addr)}, "other addresses of Services, which are let pass (guard)"},
		{
			setServiceCIDRs, "service-cidrs",
			nft.Set{Key: fields(addr), Interval: true},
			"ranges of cluster IPs: what is for none is dropped (guard)",
		},
		{setHealthChecks, "health-checks", nft.Set{Key: fields(proto, port)}, "answer at addresses of Services, too (guard)"},
		{setOwnAddresses, "own-addresses", nft.Set{Key: fields(addr)}, "of the node, Services or not (guard)"},
	}
}
