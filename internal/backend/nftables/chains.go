package nftables

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/nft"
)

// Chains that others lead to.
const (
	chainServices        = "services"   // and the family
	chainNodePorts       = "node-ports" // and the family
	chainBalance         = "balance"
	chainMasqueradeAll   = "masquerade-all"
	chainMasqueradePods  = "masquerade-outside"
	chainMasqueradeNode  = "masquerade-node"
	chainRefuse          = "refuse"            // also with a family
	chainRefuseNodePorts = "refuse-node-ports" // also with a family
	chainRefused         = "refused"
	chainGuard           = "guard"
	chainInvalid         = "invalid"
)

var (
	loopback4 = netip.MustParsePrefix("127.0.0.0/8")
	loopback6 = netip.MustParsePrefix("::1/128")
)

// chains are those that depend on no Service port.
func (s *structure) chains() []nft.Chain { return slices.Concat(s.natChains(), s.otherChains()) }

// natChains lead a packet from where it comes in to the chain that picks an endpoint.
func (s *structure) natChains() []nft.Chain {
	all := []nft.Chain{
		base("nat-prerouting", "from the network", nft.NAT, nft.Prerouting, nft.PriorityDstNAT, s.translate()),
		base("nat-output", "from a process of this node", nft.NAT, nft.Output, nft.PriorityDstNAT, s.translateOwn()),
	}
	for _, f := range model.Families {
		all = append(all, s.services(f))
	}
	for _, f := range model.Families {
		all = append(all, s.nodePorts(f))
	}
	return append(append(all, balance()), s.masqueradeChains()...)
}

// otherChains are for what has an endpoint by now, and for what has none.
func (s *structure) otherChains() []nft.Chain {
	all := []nft.Chain{
		base("nat-postrouting", "a new source address", nft.NAT, nft.Postrouting, nft.PrioritySrcNAT, s.masquerade()),
		base("filter-input", "to this node", nft.Filter, nft.Input, nft.PriorityFilter, s.input()),
		base("filter-forward", "through this node", nft.Filter, nft.Forward, nft.PriorityFilter, s.forward()),
		base("filter-output", "from a process of this node", nft.Filter, nft.Output, nft.PriorityFilter, s.output()),
	}
	all = append(all, s.refuseChains()...)
	if s.guard {
		all = append(all, s.guardChain())
	}
	if !s.liberal {
		all = append(all, s.invalid())
	}
	return all
}

func base(name, comment string, t nft.ChainType, h nft.Hook, priority int32, rules []nft.Rule) nft.Chain {
	return nft.Chain{Name: name, Comment: comment, Base: &nft.Base{Type: t, Hook: h, Priority: priority}, Rules: rules}
}

func (s *structure) translate() []nft.Rule {
	return both(func(f model.Family) nft.Rule { return ip(f).then(goTo(named(chainServices, f))) })
}

// translateOwn is for what this node sends. A loopback address is nobody's but a node port's.
func (s *structure) translateOwn() (rules []nft.Rule) {
	if s.localhost {
		rules = append(rules, ip(model.IPv4).then(to(loopback4, false), goTo(named(chainNodePorts, model.IPv4))))
	}
	return append(rules, s.translate()...)
}

// services finds the frontend that a packet is for. Who is kept out is kept out first.
func (s *structure) services(f model.Family) nft.Chain {
	source := append(nft.Concat{saddr(f)}, destination(f)...)
	rules := []nft.Rule{
		ip(f).then(in(destination(f), setGuarded.of(f)), notIn(source, setAllowed.of(f)), drop()),
	}
	rules = append(rules, s.lookups(f, destination(f), setServices, setOutside, chainBalance)...)
	for _, w := range s.atNode(f) {
		rules = append(rules, w.then(goTo(named(chainNodePorts, f))))
	}
	return nft.Chain{Name: named(chainServices, f), Comment: "find the route of an address", Rules: rules}
}

func (s *structure) nodePorts(f model.Family) nft.Chain {
	return nft.Chain{
		Name:    named(chainNodePorts, f),
		Comment: "find the route of a node port",
		Rules:   s.lookups(f, nodePort(), setNodePorts, setOutsideNodePorts, chainBalance),
	}
}

// lookups take the route of a frontend and go on with it: that for clients outside, if there is one and the client is
// outside, and else the one for all.
func (s *structure) lookups(f model.Family, key nft.Expr, all, outside setID, next string) (rules []nft.Rule) {
	if tests, some := noPod(s.detect[f]); some {
		local := nft.FibIsLocal{Of: nft.FibSaddr, Not: true}
		rules = append(rules, ip(f).and(tests...).then(takeRoute(key, outside.of(f)), local, goTo(next)))
	}
	return append(rules, ip(f).then(takeRoute(key, all.of(f)), goTo(next)))
}

// atNode are the tests for the addresses of this node that accept node ports, save loopback addresses, which come by
// another way.
func (s *structure) atNode(f model.Family) []when {
	if !s.allLocal[f] {
		return []when{ip(f).and(in(daddr(f), setNodeAddresses.of(f)))}
	}
	loopback := [...]netip.Prefix{model.IPv4: loopback4, model.IPv6: loopback6}[f]
	return []when{ip(f).and(nft.FibIsLocal{Of: nft.FibDaddr}, to(loopback, true))}
}

// balance goes where the route leads. Where it leads nowhere the packet stays as it is, for the filter chains to refuse.
func balance() nft.Chain {
	mark := func(m masquerade, chain string) nft.Rule {
		return when{hasRoute(maskMasquerade, uint32(m))}.then(jump(chain))
	}
	return nft.Chain{Name: chainBalance, Comment: "follow the route: whose source to mark, which bucket", Rules: []nft.Rule{
		mark(masqueradeNoPods, chainMasqueradePods),
		mark(masqueradeAll, chainMasqueradeAll),
		mark(masqueradeNode, chainMasqueradeNode),
		when{}.then(nft.Vmap{Key: routeBits(maskBucket), Map: setBuckets.name()}),
	}}
}

// masqueradeChains mark packets for a new source address. Who is a pod is nothing else, even at an address of the node.
func (s *structure) masqueradeChains() []nft.Chain {
	mark := nft.SetMeta{Meta: nft.Mark, To: nft.Bits{Of: nft.Mark, Op: nft.Or, By: s.mark}}
	var noPods, own []nft.Rule
	for _, f := range model.Families {
		tests, some := noPod(s.detect[f])
		if !some {
			continue
		}
		if s.detect[f].Implemented() {
			noPods = append(noPods, ip(f).and(tests...).then(mark))
		}
		own = append(own, ip(f).and(tests...).then(nft.FibIsLocal{Of: nft.FibSaddr}, mark))
	}
	return []nft.Chain{
		{Name: chainMasqueradePods, Comment: "mark who is no pod", Rules: noPods},
		{Name: chainMasqueradeAll, Comment: "mark everybody", Rules: []nft.Rule{when{}.then(mark)}},
		{Name: chainMasqueradeNode, Comment: "mark this node's own processes", Rules: own},
	}
}

// masquerade gives a new source to who has the mark, which is taken away first, since a packet may come by again with
// the mark still on it once a tunnel has wrapped it; and to an endpoint that was sent to itself, which would answer
// itself directly.
func (s *structure) masquerade() []nft.Rule {
	marked := nft.Is{Left: nft.Bits{Of: nft.Mark, Op: nft.And, By: s.mark}, Right: nft.Value{}.Uint32(s.mark)}
	unmark := nft.SetMeta{Meta: nft.Mark, To: nft.Bits{Of: nft.Mark, Op: nft.And, By: ^s.mark}}
	rules := []nft.Rule{because("marked by masquerade-*", when{marked}.then(unmark, nft.Masquerade{}))}
	return append(rules, both(func(f model.Family) nft.Rule {
		itself := nft.Concat{saddr(f), daddr(f), nft.L4Proto, nft.THDport}
		return because("sent to itself", ip(f).then(status(nft.StatusDNAT), in(itself, setHairpin.of(f)), nft.Masquerade{}))
	})...)
}
