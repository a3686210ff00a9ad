package nftables

import (
	"net/netip"
	"slices"
	"strconv"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
)

// when is the tests of a rule, for the action to be added: see [when.then].
type when []nft.Statement

// then is the rule that does something if all tests hold.
func (w when) then(actions ...nft.Statement) nft.Rule {
	return nft.Rule{Statements: slices.Concat(w, actions)}
}

// because is the rule with a comment, for one that does not speak for itself.
func because(why string, r nft.Rule) nft.Rule {
	r.Comment = why
	return r
}

// and adds tests.
func (w when) and(tests ...nft.Statement) when { return slices.Concat(w, tests) }

// ip tests for a family. Every rule that looks at addresses begins with it, as nft would have it do anyway.
func ip(f model.Family) when {
	number := [...]uint8{model.IPv4: nft.ProtoIPv4, model.IPv6: nft.ProtoIPv6}[f]
	return when{nft.Is{Left: nft.NFProto, Right: nft.Value{}.Proto(number)}}
}

func saddr(f model.Family) nft.Payload { return [...]nft.Payload{nft.IPSaddr, nft.IP6Saddr}[f] }

func daddr(f model.Family) nft.Payload { return [...]nft.Payload{nft.IPDaddr, nft.IP6Daddr}[f] }

// destination is the key of a frontend, as a packet has it.
func destination(f model.Family) nft.Concat { return nft.Concat{daddr(f), nft.L4Proto, nft.THDport} }

// nodePort is the key of a node port, as a packet has it.
func nodePort() nft.Concat { return nft.Concat{nft.L4Proto, nft.THDport} }

// transport tests for the protocols of Services. nft wants to know that there are ports before it translates one.
func transport() nft.Statement {
	protocols := []nft.Value{}
	for _, p := range [...]model.Protocol{model.TCP, model.UDP, model.SCTP} {
		protocols = append(protocols, nft.Value{}.Proto(uint8(p)))
	}
	return nft.OneOf{Left: nft.L4Proto, Type: nft.InetProto, List: protocols}
}

func in(e nft.Expr, s setID) nft.Statement { return nft.In{Left: e, Set: s.name()} }

func notIn(e nft.Expr, s setID) nft.Statement { return nft.In{Left: e, Not: true, Set: s.name()} }

// from tests where a packet comes from, to where it goes.
func from(p netip.Prefix, not bool) nft.Statement {
	return within(saddr(model.FamilyOf(p.Addr())), p, not)
}

func to(p netip.Prefix, not bool) nft.Statement {
	return within(daddr(model.FamilyOf(p.Addr())), p, not)
}

func within(e nft.Payload, p netip.Prefix, not bool) nft.Statement {
	is := nft.Is{Left: e, Not: not, Right: nft.Value{}.Addr(p.Addr()), Prefix: p.Bits()}
	if p.IsSingleIP() {
		is.Prefix = 0
	}
	return is
}

// takeRoute takes the route at a key of a map of routes; without any, the rule ends.
func takeRoute(key nft.Expr, s setID) nft.Statement {
	return nft.SetMeta{Meta: nft.Priority, To: nft.Lookup{Key: key, Map: s.name()}}
}

// routeBits are some bits of the route that a packet has.
func routeBits(mask uint32) nft.Bits { return nft.Bits{Of: nft.Priority, Op: nft.And, By: mask} }

func hasRoute(mask, value uint32) nft.Statement {
	return nft.Is{Left: routeBits(mask), Right: nft.Value{}.Uint32(value)}
}

func state(bits uint32) nft.Statement { return nft.HasBits{Left: nft.CTState, Bits: bits} }

func status(bits uint32) nft.Statement { return nft.HasBits{Left: nft.CTStatus, Bits: bits} }

func jump(chain string) nft.Statement { return nft.Verdict{Kind: nft.Jump, Chain: chain} }

func goTo(chain string) nft.Statement { return nft.Verdict{Kind: nft.Goto, Chain: chain} }

func drop() nft.Statement { return nft.Verdict{Kind: nft.Drop} }

func accept() nft.Statement { return nft.Verdict{Kind: nft.Accept} }

// back ends a chain that was jumped to.
func back() nft.Statement { return nft.Verdict{Kind: nft.Return} }

// named is the name of a chain that exists for each family.
func named(name string, f model.Family) string { return name + strconv.Itoa(digit(f)) }

// both are the rules of both families.
func both(one func(model.Family) nft.Rule) (rules []nft.Rule) {
	for _, f := range model.Families {
		rules = append(rules, one(f))
	}
	return rules
}

// echoRequest tests for pings.
func echoRequest(f model.Family) when {
	protocol, field, request := nft.ProtoICMP, nft.ICMPType, nft.ICMPEchoRequest
	if f == model.IPv6 {
		protocol, field, request = nft.ProtoICMP6, nft.ICMP6Type, nft.ICMP6EchoRequest
	}
	return when{
		nft.Is{Left: nft.L4Proto, Right: nft.Value{}.Proto(protocol)}, nft.Is{Left: field, Right: nft.Value{}.Proto(request)},
	}
}

// noPod are the tests for clients that are not known to be pods: none where nothing tells pods. It reports false where
// everybody is a pod.
func noPod(d plan.Detector) (tests when, some bool) {
	switch {
	case d.CIDR.IsValid() && d.CIDR.Bits() == 0:
		return nil, false
	case d.CIDR.IsValid():
		return when{from(d.CIDR, true)}, true
	case d.Interface != "":
		return when{nft.IsName{Left: nft.IIFName, Not: true, Name: d.Interface, Wildcard: d.Wildcard}}, true
	}
	return nil, true
}
