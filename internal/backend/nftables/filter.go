package nftables

import (
	"sluice/internal/model"
	"sluice/internal/nft"
)

// guardsLoopback reports whether packets from the network to loopback addresses are dropped.
func (s *structure) guardsLoopback() bool { return s.localhost || s.routed }

// input is for what this node is to take. Node ports on localhost have the kernel let loopback addresses in from the
// network, so all are kept out here but the answers of endpoints, which nat has given their client's address by now.
func (s *structure) input() (rules []nft.Rule) {
	if s.guardsLoopback() {
		lo := nft.IsName{Left: nft.IIFName, Not: true, Name: "lo"}
		noAnswer := state(nft.StateInvalid | nft.StateNew | nft.StateUntracked)
		guard := ip(model.IPv4).then(lo, to(loopback4, false), noAnswer, drop())
		rules = append(rules, because("node ports on localhost open loopback addresses to the network", guard))
	}
	rules = append(append(rules, s.settled()...), fresh(chainRefuse), fresh(chainRefuseNodePorts))
	if s.guard && !s.ipvs {
		rules = append(rules, fresh(chainGuard))
	}
	return rules
}

// forward is for what passes through. What connection tracking calls invalid it would not translate back: the client
// would see the endpoint's address and reset its connection (kubernetes issue 74839).
func (s *structure) forward() []nft.Rule {
	rules := append(s.settled(), fresh(chainRefuse))
	if s.guard {
		rules = append(rules, fresh(chainGuard))
	}
	if !s.liberal {
		rules = append(rules, when{state(nft.StateInvalid)}.then(jump(chainInvalid)))
	}
	return rules
}

// output is for what this node sends. What it sends to itself comes by input too, where node ports are refused: the
// guard must not be before them.
func (s *structure) output() []nft.Rule {
	rules := s.settled()
	if s.ipvs {
		rules = append(rules, keepOut(when{state(nft.StateNew)})...) // nat comes later
	}
	rules = append(rules, fresh(chainRefuse))
	if s.guard {
		away := nft.FibIsLocal{Of: nft.FibDaddr, Not: true}
		rules = append(rules, when{state(nft.StateNew), away}.then(jump(chainGuard)))
	}
	return rules
}

// settled lets pass what was decided on before.
func (s *structure) settled() []nft.Rule {
	if s.ipvs {
		return []nft.Rule{established()} // ipvs comes later
	}
	return []nft.Rule{established(), translated()}
}

// established lets pass at once what most packets are. Whether they are translated was settled with the first one.
func established() nft.Rule {
	return when{state(nft.StateEstablished | nft.StateRelated)}.then(accept())
}

// translated lets pass what nat has sent to an endpoint, and takes the route off it, which other parts of the kernel
// would read as a priority.
func translated() nft.Rule {
	rule := when{state(nft.StateNew), status(nft.StatusDNAT)}.then(nft.SetMeta{Meta: nft.Priority}, accept())
	return because("has an endpoint", rule)
}

// fresh leads new connections to a chain.
func fresh(chain string) nft.Rule { return when{state(nft.StateNew)}.then(jump(chain)) }

// refuseChains look again for the frontend of what nat has not translated, and do what nat chains cannot.
func (s *structure) refuseChains() []nft.Chain {
	nodePorts := append(s.byNodePort(chainRefused), s.byLoopback(chainRefused)...)
	return []nft.Chain{
		{Name: chainRefuse, Comment: "what nat left as it was: find the route again", Rules: byAddress(chainRefused)},
		{Name: chainRefuseNodePorts, Comment: "the same, for this node", Rules: nodePorts},
		s.refused(),
	}
}

// refused does what the route says, which for clients outside may be another one. A packet whose route does lead to
// endpoints is left alone: it was sent to its own destination, an endpoint that listens at the frontend's very address,
// which connection tracking does not call translated, or ipvs is to send it. Only the route is taken off it.
func (s *structure) refused() nft.Chain {
	c := nft.Chain{Name: chainRefused, Comment: "reject or drop, if the route says so"}
	for _, f := range model.Families {
		if tests, some := noPod(s.detect[f]); some {
			differs := hasRoute(maskMasquerade, uint32(masqueradeNode))
			away := nft.FibIsLocal{Of: nft.FibSaddr, Not: true}
			c.Rules = append(c.Rules, ip(f).and(differs).and(tests...).then(away, jump(named(chainOutside, f))))
		}
	}
	c.Rules = append(
		c.Rules,
		when{hasRoute(maskBucket, bucketReject.key())}.then(nft.Reject{}),
		when{hasRoute(maskBucket, bucketDrop.key())}.then(drop()),
	)
	c.Rules = append(c.Rules, s.forwarded()...)
	return c
}

// forwarded is for a packet whose route leads to endpoints. One that came by when mode ipvs had the table is not translated,
// and for this node as long as virtual servers drain: they still take it.
func (s *structure) forwarded() []nft.Rule {
	unroute := nft.SetMeta{Meta: nft.Priority}
	if s.ipvs {
		return []nft.Rule{because("left to ipvs", when{}.then(unroute, accept()))}
	}
	return []nft.Rule{
		because("came by when ipvs was to take it", when{nft.FibIsLocal{Of: nft.FibDaddr}}.then(unroute, accept())),
		because("an endpoint at its own frontend", when{}.then(unroute)),
	}
}

// guardChain refuses what is for a cluster IP and for none of its ports, and what is for a cluster IP that nobody has.
func (s *structure) guardChain() nft.Chain {
	c := nft.Chain{Name: chainGuard, Comment: "refuse what is for a cluster IP and no Service"}
	for _, f := range model.Families {
		away := nft.FibIsLocal{Of: nft.FibDaddr, Not: true}
		if s.ipvs {
			c.Rules = append(c.Rules, guardVirtual(f)...)
		} else {
			c.Rules = append(c.Rules, ip(f).then(in(daddr(f), setClusterIPs.of(f)), nft.Reject{}))
		}
		c.Rules = append(
			c.Rules,
			ip(f).then(in(daddr(f), setServiceCIDRs.of(f)), notIn(daddr(f), setExternalIPs.of(f)), away, drop()),
		)
	}
	return c
}

// invalid drops packets of endpoints and for frontends.
func (s *structure) invalid() nft.Chain {
	c := nft.Chain{Name: chainInvalid, Comment: "drop what connection tracking would not translate back"}
	for _, f := range model.Families {
		endpoint := nft.Concat{saddr(f), saddr(f), nft.L4Proto, nft.THSport}
		c.Rules = append(
			c.Rules,
			ip(f).then(in(endpoint, setHairpin.of(f)), drop()),
			ip(f).then(takeRoute(destination(f), setServices.of(f)), drop()),
		)
	}
	return c
}
