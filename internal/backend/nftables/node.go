package nftables

import (
	"net/netip"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
)

// structure is all that chains and rules depend on. When it changes, the table is made anew.
type structure struct {
	detect    [2]plan.Detector
	allLocal  [2]bool // node ports answer at every address of the node
	localhost bool    // and at 127.0.0.0/8
	routed    bool    // the kernel still routes loopback addresses, though no node ports are served there
	guard     bool    // see plan.Config.GuardClusterIPs
	mark      uint32
	liberal   bool
	ipvs      bool // see DeliverIPVS
	// ping is who answers pings in the place of cluster IPs; see plan.Config.AnswerPing.
	ping [2]netip.Addr
}

func newStructure(n *plan.Node, o Options) structure {
	s := structure{
		detect: n.Detect, localhost: n.NodePorts[model.IPv4].Loopback, guard: n.GuardClusterIPs,
		mark: 1 << o.MasqueradeBit, liberal: o.TCPBeLiberal,
	}
	for _, f := range model.Families {
		s.allLocal[f] = n.NodePorts[f].All
	}
	if n.AnswerPing && o.Deliver == DeliverDNAT { // ipvs' addresses answer by themselves
		s.ping = n.Primary
	}
	if o.Deliver == DeliverIPVS {
		// Addresses of Services are the node's, too, so that those with node ports must be told by name; and all of them
		// must be guarded from what listens on the node. Who asks at a loopback address ipvs does not serve.
		s.ipvs, s.guard, s.localhost, s.allLocal = true, true, false, [2]bool{}
	}
	return s
}

// nodePart is the elements that depend on the node. It is never changed.
type nodePart struct {
	addresses [2][]netip.Addr   // at which node ports answer
	cidrs     [2][]netip.Prefix // of Services
	own       [2][]netip.Addr   // all of the node's, for ipvs
}

func newNodePart(n *plan.Node, s *structure) *nodePart {
	p := &nodePart{cidrs: n.ServiceCIDRs}
	if s.ipvs {
		p.own = ownAddresses(n)
	}
	for _, f := range model.Families {
		if np := n.NodePorts[f]; np.All {
			p.addresses[f] = p.own[f]
		} else {
			p.addresses[f] = np.Addresses
		}
	}
	return p
}

// ownAddresses are those of the node but for loopback addresses.
func ownAddresses(n *plan.Node) (all [2][]netip.Addr) {
	for _, a := range n.Addresses {
		if f := model.FamilyOf(a); !a.IsLoopback() {
			all[f] = append(all[f], a)
		}
	}
	return all
}

// isOfNode reports whether a set has elements that depend on the node alone.
func isOfNode(s setID) bool {
	switch s.ofIPv4() {
	case setNodeAddresses, setServiceCIDRs, setOwnAddresses:
		return true
	}
	return false
}

// elements yields all elements of the node. The element is the same one each time.
func (p *nodePart) elements(yield func(setID, *nft.Element) bool) {
	var e nft.Element
	each := func(set setID, addresses []netip.Addr) bool {
		for _, a := range addresses {
			e = nft.Element{Key: nft.Value{}.Addr(a)}
			if !yield(set, &e) {
				return false
			}
		}
		return true
	}
	for _, f := range model.Families {
		if !each(setNodeAddresses.of(f), p.addresses[f]) || !each(setOwnAddresses.of(f), p.own[f]) {
			return
		}
		for _, c := range p.cidrs[f] {
			e = nft.Element{Key: nft.Value{}.Addr(c.Addr()), End: nft.Value{}.Addr(nft.LastOf(c))}
			if !yield(setServiceCIDRs.of(f), &e) {
				return
			}
		}
	}
}
