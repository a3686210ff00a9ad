package nftables

import (
	"strconv"
	"time"

	"sluice/internal/model"
	"sluice/internal/nft"
)

// setID is one of the table's sets and maps. They are loaded in this order: the maps that lead to others come last. Of
// those that exist for each family the constant is IPv4's; see [setID.of].
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
	setOutside
	setOutsideNodePorts
	setServices
	setNodePorts
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

// sets are the definitions. Their sizes are those of an almost empty table; see [sizes].
var sets = defineSets()

func defineSets() (defs [setCount]nft.Set) {
	for _, f := range model.Families {
		for id, def := range setsOf(f) {
			def.Name = familyNames[id] + strconv.Itoa(digit(f))
			defs[id.of(f)] = def
		}
	}
	number := []nft.Field{{Type: nft.ClassID}}
	defs[setConnections] = nft.Set{Name: "connections", Key: number, Counter: true}
	defs[setRoundRobin] = nft.Set{Name: "round-robin", Key: number, Verdicts: true}
	defs[setBuckets] = nft.Set{Name: "buckets", Key: number, Verdicts: true}
	return defs
}

// familyNames are the names of the sets that exist for each family, without the family.
var familyNames = [bothFamilies]string{
	setHairpin: "hairpin", setEndpoints: "endpoints", setAffineEndpoints: "affine-endpoints", setAffineSlots: "affine-slots",
	setAffinity: "affinity", setNodeAddresses: "node-addresses", setClusterIPs: "cluster-ips", setExternalIPs: "external-ips",
	setServiceCIDRs: "service-cidrs", setAllowed: "allowed", setGuarded: "guarded", setOutside: "outside",
	setOutsideNodePorts: "outside-node-ports", setServices: "services", setNodePorts: "node-ports",
}

// setsOf are the sets of one family, without names.
func setsOf(f model.Family) map[setID]nft.Set {
	var (
		addr     = nft.Field{Type: [...]nft.Type{model.IPv4: nft.IPv4Addr, model.IPv6: nft.IPv6Addr}[f]}
		proto    = nft.Field{Type: nft.InetProto}
		port     = nft.Field{Type: nft.InetService}
		number   = nft.Field{Type: nft.ClassID}
		frontend = []nft.Field{addr, proto, port}
		nodePort = []nft.Field{proto, port}
		numbers  = []nft.Field{number}

		// nft has no name for the type of numgen, so these are declared by expressions.
		likeNumber = nft.Field{Type: nft.ClassID, Like: nft.Priority}
		slot       = []nft.Field{likeNumber, {Type: nft.Integer, Like: nft.Numgen{Mod: 2}}}
		target     = []nft.Field{{Type: addr.Type, Like: daddr(f)}, {Type: nft.InetService, Like: nft.THDport}}
	)
	return map[setID]nft.Set{
		setHairpin:          {Key: []nft.Field{addr, addr, proto, port}},
		setEndpoints:        {Key: slot, Data: target},
		setAffineEndpoints:  {Key: numbers, Data: []nft.Field{addr, port}},
		setAffineSlots:      {Key: slot, Data: []nft.Field{likeNumber}},
		setAffinity:         {Key: []nft.Field{number, addr}, Data: numbers, Dynamic: true, Timeout: affinityTimeout, Size: affinitySize},
		setNodeAddresses:    {Key: []nft.Field{addr}},
		setClusterIPs:       {Key: []nft.Field{addr}},
		setExternalIPs:      {Key: []nft.Field{addr}},
		setServiceCIDRs:     {Key: []nft.Field{addr}, Interval: true},
		setAllowed:          {Key: []nft.Field{addr, addr, proto, port}, Interval: true},
		setGuarded:          {Key: frontend},
		setOutside:          {Key: frontend, Data: numbers},
		setOutsideNodePorts: {Key: nodePort, Data: numbers},
		setServices:         {Key: frontend, Data: numbers},
		setNodePorts:        {Key: nodePort, Data: numbers},
	}
}

// minSizes are the smallest sizes of the sets that have one; the others take what comes. With a size the kernel uses a
// hash table that is twice as fast to fill and never grows.
var minSizes = [setCount]uint32{
	setHairpin: 1 << 14, setHairpin + 1: 1 << 14, setEndpoints: 1 << 14, setEndpoints + 1: 1 << 14,
	setAffineEndpoints: 1 << 12, setAffineEndpoints + 1: 1 << 12, setAffineSlots: 1 << 12, setAffineSlots + 1: 1 << 12,
	setClusterIPs: 1 << 12, setClusterIPs + 1: 1 << 12, setOutside: 1 << 12, setOutside + 1: 1 << 12,
	setServices: 1 << 12, setServices + 1: 1 << 12, setConnections: 1 << 13,
}

// sizes are those of the sets that have one, and how many elements they are to hold at most. Elements that Service ports
// share are counted for each of them.
//
// The kernel takes a size when a set is made and never changes it, so that to grow is to make the table anew.
type sizes struct {
	size  [setCount]uint32
	count [setCount]int
}

// grow makes sizes great enough, with room for what comes before what goes, and reports whether any had to change.
func (s *sizes) grow() (grown bool) {
	for id, least := range minSizes {
		if least == 0 {
			continue
		}
		size := max(s.size[id], least)
		for s.count[id] > int(size)/4*3 {
			size *= 2
		}
		grown = grown || size != s.size[id]
		s.size[id] = size
	}
	return grown
}
