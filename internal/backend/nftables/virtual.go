package nftables

import (
	"sluice/internal/model"
	"sluice/internal/nft"
)

// With [DeliverIPVS] the way of a packet is the same up to the bucket. ipvs takes what is for this node at priority 99,
// after the filter chains, and what this node sends at -98, just after nat. What it sends on goes by the output hook,
// again if it was there before, and by postrouting.

// priorityUnserved is after ipvs, and after nat, which is at 100.
const priorityUnserved int32 = 110

// has reports whether there is a set.
func (s *structure) has(set setID) bool {
	switch set.ofIPv4() {
	case setEndpoints, setAffineSlots, setAffineEndpoints, setAffinity:
		return !s.ipvs
	case setMarks, setOwnAddresses, setHealthChecks:
		return s.ipvs
	}
	return set != setRoundRobin && set != setBuckets || !s.ipvs
}

// outputPriority is that of the chain which refuses what this node sends.
func (s *structure) outputPriority() int32 {
	if s.ipvs {
		return nft.PriorityMangle
	}
	return nft.PriorityFilter
}

// leave leaves the packet to ipvs. A process of this node that asks for an address of a Service speaks from that very
// address, unless it chose another: it would not be found there by an endpoint on another node. The route is of no use
// any more, and other parts of the kernel would read it as a priority.
func (s *structure) leave() []nft.Rule {
	rules := both(func(f model.Family) nft.Rule {
		return because("this node", ip(f).then(in(saddr(f), setClusterIPs.of(f)), s.toMark()))
	})
	return append(rules, count(), because("ipvs goes on", when{}.then(nft.SetMeta{Meta: nft.Priority})))
}

// toVirtual leads to the virtual server of a list. There is no bit for masquerading in its mark, nor need be: those are
// clients outside, and their list is of endpoints on this node.
func toVirtual(f model.Family) nft.Statement {
	return nft.SetMeta{Meta: nft.Mark, To: nft.Lookup{Key: theList(), Map: setMarks.of(f).name()}}
}

// pastVirtual takes off the mark that led to a virtual server, and masquerades an endpoint that was sent to itself. ipvs
// leaves no trace by which that is told from one that asked for itself, but connection tracking knows what it asked for.
func (s *structure) pastVirtual() []nft.Rule {
	m := marks{masquerade: s.mark}
	ours := nft.Is{
		Left:  nft.Bits{Of: nft.Mark, Op: nft.And, By: m.others()},
		Right: nft.Value{}.Uint32(m.of(0) & m.others()),
	}
	unmark := because("led to a virtual server", when{ours}.then(nft.SetMeta{Meta: nft.Mark}))
	return append([]nft.Rule{unmark}, both(func(f model.Family) nft.Rule {
		asked := [...]nft.CT{model.IPv4: nft.CTOriginalDaddr, model.IPv6: nft.CTOriginalDaddr6}[f]
		itself := nft.Concat{saddr(f), daddr(f), nft.L4Proto, nft.THDport}
		asItIs := nft.Concat{saddr(f), asked, nft.L4Proto, nft.THDport}
		sent := ip(f).then(in(itself, setHairpin.of(f)), notIn(asItIs, setHairpin.of(f)), nft.Masquerade{})
		return because("sent to itself", sent)
	})...)
}

// guardVirtual is for addresses that are this node's because of ipvs alone: they answer pings, and where health is asked
// for, but nobody who listens at all addresses of the node is reached by way of them. Those of the node that a Service
// has as well stay as they are.
func guardVirtual(f model.Family) []nft.Rule {
	here := nft.FibIsLocal{Of: nft.FibDaddr}
	external := ip(f).then(in(daddr(f), setExternalIPs.of(f)), notIn(daddr(f), setOwnAddresses.of(f)), goTo(chainUnserved))
	return []nft.Rule{
		ip(f).and(echoRequest(f)...).then(here, back()),
		ip(f).then(in(nodePort(), setHealthChecks.of(f)), in(daddr(f), setExternalIPs.of(f)), back()),
		ip(f).then(in(nodePort(), setHealthChecks.of(f)), in(daddr(f), setClusterIPs.of(f)), back()),
		external,
		ip(f).then(in(daddr(f), setClusterIPs.of(f)), goTo(chainUnserved)),
	}
}

// unserved refuses. A packet in the midst of a connection that ipvs knows no longer, after a quarter of an hour without
// any say, comes here as a new one: its sender must be told in a way that ends the connection.
func unserved() nft.Chain {
	tcp := nft.Is{Left: nft.L4Proto, Right: nft.Value{}.Proto(uint8(model.TCP))}
	return nft.Chain{Name: chainUnserved, Comment: "no virtual server has it", Rules: []nft.Rule{
		when{tcp}.then(nft.Reject{Reset: true}), when{}.then(nft.Reject{}),
	}}
}
