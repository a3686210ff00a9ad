package nftables

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/nft"
)

// Chains that others lead to.
const (
	chainBalance         = "balance"
	chainExternal        = "external"
	chainExternalLocal   = "external-local"
	chainOutside         = "outside" // and the family
	chainRefuse          = "refuse"
	chainRefuseNodePorts = "refuse-node-ports"
	chainRefused         = "refused"
	chainGuard           = "guard"
	chainInvalid         = "invalid"
	chainUnserved        = "unserved"
)

var (
	loopback4 = netip.MustParsePrefix("127.0.0.0/8")
	loopback6 = netip.MustParsePrefix("::1/128")
)

// chains are those that depend on no Service port.
func (s *structure) chains() []nft.Chain { return slices.Concat(s.natChains(), s.otherChains()) }

// natChains lead a packet from where it comes in to the chain that picks an endpoint.
func (s *structure) natChains() []nft.Chain {
	return []nft.Chain{
		base("nat-prerouting", "from the network", nft.NAT, nft.Prerouting, nft.PriorityDstNAT, s.translate()),
		base("nat-output", "from a process of this node", nft.NAT, nft.Output, nft.PriorityDstNAT, s.translateOwn()),
		s.balance(), s.external(), s.externalLocal(), outside(model.IPv4), outside(model.IPv6),
	}
}

// otherChains are for what has an endpoint by now, and for what has none.
func (s *structure) otherChains() []nft.Chain {
	all := []nft.Chain{
		base("nat-postrouting", "a new source address", nft.NAT, nft.Postrouting, nft.PrioritySrcNAT, s.masquerade()),
		base("filter-input", "to this node", nft.Filter, nft.Input, nft.PriorityFilter, s.input()),
		base("filter-forward", "through this node", nft.Filter, nft.Forward, nft.PriorityFilter, s.forward()),
		base("filter-output", "from a process of this node", nft.Filter, nft.Output, s.outputPriority(), s.output()),
	}
	all = append(all, s.refuseChains()...)
	if s.ipvs {
		left := []nft.Rule{established(), fresh(chainGuard)}
		all = append(all, base("filter-unserved", "to this node, and ipvs left it alone", nft.Filter, nft.Input, priorityUnserved, left))
	}
	if s.guard {
		all = append(all, s.guardChain())
	}
	if s.ipvs {
		all = append(all, unserved())
	}
	if !s.liberal {
		all = append(all, s.invalid())
	}
	return all
}

func base(name, comment string, t nft.ChainType, h nft.Hook, priority int32, rules []nft.Rule) nft.Chain {
	return nft.Chain{Name: name, Comment: comment, Base: &nft.Base{Type: t, Hook: h, Priority: priority}, Rules: rules}
}

// translate finds the frontend that a packet from the network is for: that of the address, or else of the node port.
func (s *structure) translate() []nft.Rule {
	return slices.Concat(byAddress(chainBalance), s.byNodePort(chainBalance), s.answerPings())
}

// translateOwn is for what this node sends.
func (s *structure) translateOwn() []nft.Rule {
	return slices.Concat(byAddress(chainBalance), s.byNodePort(chainBalance), s.byLoopback(chainBalance), s.answerPings())
}

// answerPings has this node itself answer the pings for cluster IPs.
func (s *structure) answerPings() (rules []nft.Rule) {
	for _, f := range model.Families {
		if s.ping[f].IsValid() {
			rules = append(rules, ip(f).and(echoRequest(f)...).then(in(daddr(f), setClusterIPs.of(f)), nft.DNATAddr{To: s.ping[f]}))
		}
	}
	return rules
}

// byAddress takes the route of the address that a packet is for, and goes on with it.
func byAddress(next string) []nft.Rule {
	return both(func(f model.Family) nft.Rule {
		return ip(f).then(takeRoute(destination(f), setServices.of(f)), goTo(next))
	})
}

// byNodePort takes the route of the node port, at addresses of this node but loopback addresses.
func (s *structure) byNodePort(next string) []nft.Rule {
	return both(func(f model.Family) nft.Rule {
		return s.atNode(f).then(takeRoute(nodePort(), setNodePorts.of(f)), goTo(next))
	})
}

// byLoopback does at loopback addresses, where only this node itself is served.
func (s *structure) byLoopback(next string) []nft.Rule {
	if !s.localhost {
		return nil
	}
	return []nft.Rule{ip(model.IPv4).then(to(loopback4, false), takeRoute(nodePort(), setNodePorts), goTo(next))}
}

// atNode tests for the addresses of this node that accept node ports from the network.
func (s *structure) atNode(f model.Family) when {
	if !s.allLocal[f] {
		return ip(f).and(in(daddr(f), setNodeAddresses.of(f)))
	}
	loopback := [...]netip.Prefix{model.IPv4: loopback4, model.IPv6: loopback6}[f]
	return ip(f).and(nft.FibIsLocal{Of: nft.FibDaddr}, to(loopback, true))
}

// balance goes where the route leads. Where it leads nowhere the packet stays as it is, for the filter chains to refuse.
// Most packets are for cluster IPs, so what these need is here, and the rest apart.
func (s *structure) balance() nft.Chain {
	rules := []nft.Rule{when{hasRoute(maskExternal, maskExternal)}.then(jump(chainExternal))}
	for _, f := range model.Families {
		if tests, some := noPod(s.detect[f]); some && s.detect[f].Implemented() {
			noPods := hasRoute(maskMasquerade, uint32(masqueradeNoPods))
			rules = append(rules, because("no pod", ip(f).and(tests...).then(noPods, s.toMark())))
		}
	}
	return nft.Chain{
		Name: chainBalance, Comment: "follow the route: whose source to mark, which bucket",
		Rules: append(rules, s.deliver()...),
	}
}

// deliver goes to the bucket.
func (s *structure) deliver() []nft.Rule {
	if s.ipvs {
		return s.leave()
	}
	return []nft.Rule{when{}.then(nft.Vmap{Key: routeBits(maskBucket), Map: setBuckets.name()})}
}

// toMark marks packets for a new source address.
func (s *structure) toMark() nft.Statement {
	return nft.SetMeta{Meta: nft.Mark, To: nft.Bits{Of: nft.Mark, Op: nft.Or, By: s.mark}}
}

// external is for what clients outside can connect to, and for cluster IPs that masquerade everybody. What is refused
// gets no mark, since others may yet send it elsewhere; where pods are refused, so are clients outside.
func (s *structure) external() nft.Chain {
	return nft.Chain{
		Name: chainExternal, Comment: "keep out who is not allowed, mark the others",
		Rules: append(
			keepOut(nil),
			because("to be refused", when{hasRoute(maskForward, 0)}.then(back())),
			when{hasRoute(maskMasquerade, uint32(masqueradeNode))}.then(goTo(chainExternalLocal)),
			when{}.then(s.toMark()),
		),
	}
}

// keepOut drops what comes from none of the source ranges of an address that has some.
func keepOut(of when) []nft.Rule {
	return both(func(f model.Family) nft.Rule {
		source := append(nft.Concat{saddr(f)}, destination(f)...)
		return ip(f).and(of...).then(in(destination(f), setGuarded.of(f)), notIn(source, setAllowed.of(f)), drop())
	})
}

// externalLocal is for the policy Local, by which clients outside fare differently from pods and this node. Who is a pod
// is nothing else, even at an address of the node.
func (s *structure) externalLocal() nft.Chain {
	c := nft.Chain{Name: chainExternalLocal, Comment: "policy Local: mark this node's processes, send clients outside elsewhere"}
	for _, f := range model.Families {
		tests, some := noPod(s.detect[f])
		if !some {
			continue
		}
		c.Rules = append(
			c.Rules,
			ip(f).and(tests...).then(nft.FibIsLocal{Of: nft.FibSaddr}, s.toMark(), back()),
		)
		c.Rules = append(c.Rules, s.sendOutside(f, ip(f).and(tests...))...)
	}
	return c
}

// sendOutside has clients outside have a route of their own.
func (s *structure) sendOutside(f model.Family, outside when) []nft.Rule {
	if s.ipvs {
		return []nft.Rule{outside.then(jump(named(chainOutside, f))), outside.then(toVirtual(f))}
	}
	return []nft.Rule{outside.then(goTo(named(chainOutside, f)))}
}

// outside finds the route of clients outside, for a frontend where it differs. An address that has none is a node's:
// each frontend that leads here is in one of the maps.
func outside(f model.Family) nft.Chain {
	return nft.Chain{Name: named(chainOutside, f), Comment: "find the route of clients outside", Rules: []nft.Rule{
		ip(f).then(takeRoute(destination(f), setOutside.of(f)), back()),
		when{}.then(takeRoute(nodePort(), setOutsideNodePorts.of(f))),
	}}
}

// masquerade gives a new source to who has the mark, which is taken away first, since a packet may come by again with
// the mark still on it once a tunnel has wrapped it; and to an endpoint that was sent to itself, which would answer
// itself directly.
func (s *structure) masquerade() []nft.Rule {
	marked := nft.Is{Left: nft.Bits{Of: nft.Mark, Op: nft.And, By: s.mark}, Right: nft.Value{}.Uint32(s.mark)}
	unmark := nft.SetMeta{Meta: nft.Mark, To: nft.Bits{Of: nft.Mark, Op: nft.And, By: ^s.mark}}
	rules := []nft.Rule{because("marked by balance or external", when{marked}.then(unmark, nft.Masquerade{}))}
	if s.ipvs {
		return append(rules, s.pastVirtual()...)
	}
	return append(rules, both(func(f model.Family) nft.Rule {
		itself := nft.Concat{saddr(f), daddr(f), nft.L4Proto, nft.THDport}
		return because("sent to itself", ip(f).then(status(nft.StatusDNAT), in(itself, setHairpin.of(f)), nft.Masquerade{}))
	})...)
}
