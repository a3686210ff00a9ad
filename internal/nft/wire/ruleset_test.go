package wire_test

import (
	"net/netip"
	"strings"
	"time"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

// ruleset is a table with all that is in it.
type ruleset struct {
	table    nft.Table
	sets     []nft.Set
	chains   []nft.Chain
	elements map[string][]nft.Element
}

// batch makes the whole of it.
func (r *ruleset) batch() []byte {
	b := wire.NewBatch(r.table.Name)
	b.AddTable(r.table)
	for i := range r.sets {
		b.AddSet(&r.sets[i])
	}
	for i := range r.chains {
		b.AddChain(&r.chains[i])
	}
	for i := range r.chains {
		for j := range r.chains[i].Rules {
			b.AddRule(r.chains[i].Name, &r.chains[i].Rules[j])
		}
	}
	for i := range r.sets {
		for j := range r.elements[r.sets[i].Name] {
			b.AddElement(&r.sets[i], &r.elements[r.sets[i].Name][j])
		}
	}
	return b.Finish()
}

// Fields and values in short.
var (
	classid   = nft.Field{Type: nft.ClassID}
	proto     = nft.Field{Type: nft.InetProto}
	port      = nft.Field{Type: nft.InetService}
	byList    = nft.Field{Type: nft.ClassID, Like: nft.Priority}
	byNumgen  = nft.Field{Type: nft.Integer, Like: nft.Numgen{Mod: 2}}
	byPort    = nft.Field{Type: nft.InetService, Like: nft.THDport}
	protocols = []nft.Value{val().Proto(6), val().Proto(17), val().Proto(132)}
)

func val() nft.Value { return nft.Value{} }

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// family is what differs between the families.
type family struct {
	digit              string
	v6                 bool
	field, byAddr      nft.Field
	saddr, daddr       nft.Payload
	proto              uint8
	service, pod, node netip.Addr
	loopback           nft.Is
	cidr               netip.Prefix
}

var families = []family{
	{
		digit: "4", field: nft.Field{Type: nft.IPv4Addr}, byAddr: nft.Field{Type: nft.IPv4Addr, Like: nft.IPDaddr},
		saddr: nft.IPSaddr, daddr: nft.IPDaddr, proto: nft.ProtoIPv4,
		service: ip("10.96.0.10"), pod: ip("10.244.0.1"), node: ip("192.0.2.7"),
		loopback: nft.Is{Left: nft.IPDaddr, Right: val().Addr(ip("127.0.0.0")), Prefix: 8, Not: true},
		cidr:     netip.MustParsePrefix("10.244.0.0/13"),
	},
	{
		digit: "6", v6: true, field: nft.Field{Type: nft.IPv6Addr}, byAddr: nft.Field{Type: nft.IPv6Addr, Like: nft.IP6Daddr},
		saddr: nft.IP6Saddr, daddr: nft.IP6Daddr, proto: nft.ProtoIPv6,
		service: ip("fd00:96::a"), pod: ip("fd00:244::1"), node: ip("2001:db8::7"),
		loopback: nft.Is{Left: nft.IP6Daddr, Right: val().Addr(ip("::1")), Not: true},
		cidr:     netip.MustParsePrefix("fd00:244::/64"),
	},
}

func (f family) is() nft.Statement { return nft.Is{Left: nft.NFProto, Right: val().Proto(f.proto)} }

func (f family) frontend() nft.Expr { return nft.Concat{f.daddr, nft.L4Proto, nft.THDport} }

func rule(s ...nft.Statement) nft.Rule { return nft.Rule{Statements: s} }

func verdict(kind nft.VerdictKind, chain ...string) nft.Verdict {
	return nft.Verdict{Kind: kind, Chain: strings.Join(chain, "")}
}

func jump(chain string) nft.Verdict { return verdict(nft.Jump, chain) }

func to(chain string) nft.Verdict { return verdict(nft.Goto, chain) }

var (
	drop        = verdict(nft.Drop)
	accept      = verdict(nft.Accept)
	stateNew    = nft.HasBits{Left: nft.CTState, Bits: nft.StateNew}
	dnatted     = nft.HasBits{Left: nft.CTStatus, Bits: nft.StatusDNAT}
	listOf      = nft.Bits{Of: nft.Priority, Op: nft.And, By: 0xfffff000}
	keepList    = nft.SetMeta{Meta: nft.Priority, To: listOf}
	isTransport = nft.OneOf{Left: nft.L4Proto, Type: nft.InetProto, List: protocols}
	markAll     = nft.SetMeta{Meta: nft.Mark, To: nft.Bits{Of: nft.Mark, Op: nft.Or, By: 0x4000}}
)

const mark = 0x4000

// proxy is the table of the nftables mode with every set and every kind of chain.
func proxy() *ruleset {
	r := &ruleset{table: nft.Table{Name: "sluice", Comment: "Services"}, elements: map[string][]nft.Element{}}
	for _, f := range families {
		r.frontends(f)
		r.backends(f)
	}
	r.add(nft.Set{Name: "connections", Key: []nft.Field{classid}, Counter: true},
		nft.Element{Key: val().Uint32(7 << 12), Comment: "default/web:http"}, nft.Element{Key: val().Uint32(8 << 12), Packets: 12})
	r.add(nft.Set{Name: "buckets", Key: []nft.Field{classid}, Verdicts: true, Size: 1024},
		nft.Element{Key: val().Uint32(3 << 2), Verdict: to("random-2")}, nft.Element{Key: val().Uint32(2 << 2), Verdict: to("round-robin")})
	r.add(nft.Set{Name: "round-robin", Key: []nft.Field{classid}, Verdicts: true},
		nft.Element{Key: val().Uint32(8 << 12), Verdict: to("round-robin-8")})
	r.add(nft.Set{Name: "marks", Key: []nft.Field{classid}, Data: []nft.Field{{Type: nft.PacketMark}}},
		nft.Element{Key: val().Uint32(8 << 12), Data: val().Uint32(0x2001)})
	r.addChains()
	return r
}

func (r *ruleset) add(s nft.Set, e ...nft.Element) {
	r.sets = append(r.sets, s)
	r.elements[s.Name] = e
}

func (r *ruleset) frontends(f family) {
	key := []nft.Field{f.field, proto, port}
	web := val().Addr(f.service).Proto(6).Port(80)
	route := val().Uint32(7<<12 | 3<<2)
	r.add(nft.Set{Name: "services" + f.digit, Key: key, Data: []nft.Field{classid}, Size: 131072, Comment: "address → route"},
		nft.Element{Key: web, Data: route, Comment: "default/web:http"},
		nft.Element{Key: val().Addr(f.service).Proto(132).Port(9), Data: val().Uint32(0), Comment: strings.Repeat("n", 130)})
	r.add(nft.Set{Name: "outside" + f.digit, Key: key, Data: []nft.Field{classid}}, nft.Element{Key: web, Data: val().Uint32(4)})
	r.add(nft.Set{Name: "node-ports" + f.digit, Key: key[1:], Data: []nft.Field{classid}, Size: 8192},
		nft.Element{Key: val().Proto(17).Port(30053), Data: route})
	r.add(nft.Set{Name: "outside-node-ports" + f.digit, Key: key[1:], Data: []nft.Field{classid}})
	r.add(nft.Set{Name: "node-addresses" + f.digit, Key: key[:1]}, nft.Element{Key: val().Addr(f.node)})
	r.add(nft.Set{Name: "cluster-ips" + f.digit, Key: key[:1]}, nft.Element{Key: val().Addr(f.service), Comment: "default/web"})
	top := ip("255.255.255.255")
	if f.v6 {
		top = ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
	}
	r.add(nft.Set{Name: "service-cidrs" + f.digit, Key: key[:1], Interval: true},
		nft.Element{Key: val().Addr(f.cidr.Masked().Addr()), End: val().Addr(last(f.cidr))},
		nft.Element{Key: val().Addr(f.node)},
		nft.Element{Key: val().Addr(f.node.Next().Next()), End: val().Addr(f.node.Next().Next().Next().Next())},
		nft.Element{Key: val().Addr(top.Prev()), End: val().Addr(top)})
	r.add(nft.Set{Name: "guarded" + f.digit, Key: key}, nft.Element{Key: web})
	r.add(nft.Set{Name: "allowed" + f.digit, Key: append([]nft.Field{f.field}, key...), Interval: true},
		nft.Element{
			Key: val().Addr(f.cidr.Masked().Addr()).Addr(f.service).Proto(6).Port(80),
			End: val().Addr(last(f.cidr)).Addr(f.service).Proto(6).Port(80),
		},
		nft.Element{Key: val().Addr(f.node).Addr(f.service).Proto(6).Port(80), Comment: "a host"})
}

func last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func (r *ruleset) backends(f family) {
	slot := func(n uint32) nft.Value { return val().Uint32(7 << 12).Uint32(n) }
	r.add(nft.Set{Name: "endpoints" + f.digit, Key: []nft.Field{byList, byNumgen}, Data: []nft.Field{f.byAddr, byPort}, Size: 524288},
		nft.Element{Key: slot(0), Data: val().Addr(f.pod).Port(8080)}, nft.Element{Key: slot(1), Data: val().Addr(f.pod.Next()).Port(8080)})
	r.add(nft.Set{Name: "affinity" + f.digit, Key: []nft.Field{classid, f.field}, Data: []nft.Field{classid}, Dynamic: true, Size: 262144},
		nft.Element{Key: val().Uint32(7 << 12).Addr(f.node), Data: val().Uint32(7<<12 | 1), Timeout: 3 * time.Hour, Expires: 2 * time.Hour})
	r.add(nft.Set{Name: "affine-slots" + f.digit, Key: []nft.Field{byList, byNumgen}, Data: []nft.Field{byList}},
		nft.Element{Key: slot(0), Data: val().Uint32(7<<12 | 1)})
	r.add(nft.Set{Name: "affine-endpoints" + f.digit, Key: []nft.Field{classid}, Data: []nft.Field{f.field, port}},
		nft.Element{Key: val().Uint32(7<<12 | 1), Data: val().Addr(f.pod).Port(8080)})
	r.add(nft.Set{Name: "hairpin" + f.digit, Key: []nft.Field{f.field, f.field, proto, port}},
		nft.Element{Key: val().Addr(f.pod).Addr(f.pod).Proto(6).Port(8080)})
}

func (r *ruleset) chain(name string, base *nft.Base, rules ...nft.Rule) {
	r.chains = append(r.chains, nft.Chain{Name: name, Base: base, Rules: rules})
}

// both makes the rules for each family.
func both(rules func(f family) []nft.Rule) (all []nft.Rule) {
	for _, f := range families {
		all = append(all, rules(f)...)
	}
	return all
}

func (r *ruleset) addChains() {
	dispatch := both(func(f family) []nft.Rule { return []nft.Rule{rule(f.is(), to("services"+f.digit))} })
	r.chain("nat-prerouting", &nft.Base{Type: nft.NAT, Hook: nft.Prerouting, Priority: nft.PriorityDstNAT}, dispatch...)
	local := nft.Is{Left: nft.IPDaddr, Right: val().Addr(ip("127.0.0.0")), Prefix: 8}
	output := []nft.Rule{rule(families[0].is(), local, to("node-ports4"))}
	r.chain("nat-output", &nft.Base{Type: nft.NAT, Hook: nft.Output, Priority: nft.PriorityDstNAT}, append(output, dispatch...)...)
	marked := nft.Is{Left: nft.Bits{Of: nft.Mark, Op: nft.And, By: mark}, Right: val().Uint32(mark)}
	unmark := nft.SetMeta{Meta: nft.Mark, To: nft.Bits{Of: nft.Mark, Op: nft.And, By: ^uint32(mark)}}
	r.chain("nat-postrouting", &nft.Base{Type: nft.NAT, Hook: nft.Postrouting, Priority: nft.PrioritySrcNAT},
		append([]nft.Rule{rule(marked, unmark, nft.Masquerade{})}, both(func(f family) []nft.Rule {
			pair := nft.Concat{f.saddr, f.daddr, nft.L4Proto, nft.THDport}
			return []nft.Rule{rule(f.is(), dnatted, nft.In{Left: pair, Set: "hairpin" + f.digit}, nft.Masquerade{})}
		})...)...)
	r.filterChains()
	for _, f := range families {
		r.familyChains(f)
	}
	r.balanceChains()
	r.spreadChains()
	r.virtualChains()
}

func (r *ruleset) filterChains() {
	unroutable := both(func(f family) []nft.Rule {
		return []nft.Rule{rule(f.is(), stateNew, nft.In{Left: f.daddr, Set: "service-cidrs" + f.digit}, drop)}
	})
	filter := func(hook nft.Hook) *nft.Base { return &nft.Base{Type: nft.Filter, Hook: hook} }
	local := nft.Is{Left: nft.IPDaddr, Right: val().Addr(ip("127.0.0.0")), Prefix: 8}
	r.chain("filter-input", filter(nft.Input),
		rule(families[0].is(), nft.IsName{Left: nft.IIFName, Not: true, Name: "lo"}, local, drop),
		rule(stateNew, jump("refuse")), rule(stateNew, jump("refuse-node-ports")))
	through := []nft.Rule{rule(stateNew, dnatted, nft.SetMeta{Meta: nft.Priority}, accept), rule(stateNew, jump("refuse"))}
	r.chain("filter-output", filter(nft.Output), append(through[:2:2], unroutable...)...)
	through = append(through[:2:2], unroutable...)
	through = append(through, rule(nft.HasBits{Left: nft.CTState, Bits: nft.StateInvalid}, jump("invalid")))
	r.chain("filter-forward", filter(nft.Forward), through...)
	r.chain("refuse", nil, both(func(f family) []nft.Rule { return []nft.Rule{rule(f.is(), to("refuse"+f.digit))} })...)
	r.chain("invalid", nil, both(func(f family) []nft.Rule {
		reply := nft.Concat{f.saddr, f.saddr, nft.L4Proto, nft.THSport}
		return []nft.Rule{
			rule(f.is(), nft.In{Left: reply, Set: "hairpin" + f.digit}, drop),
			rule(f.is(), route(f.frontend(), "services"+f.digit), drop),
		}
	})...)
}

func route(key nft.Expr, from string) nft.Statement {
	return nft.SetMeta{Meta: nft.Priority, To: nft.Lookup{Key: key, Map: from}}
}

func (r *ruleset) familyChains(f family) {
	notPod := nft.Is{Left: f.saddr, Not: true, Right: val().Addr(f.cidr.Masked().Addr()), Prefix: f.cidr.Bits()}
	notLocal := nft.FibIsLocal{Of: nft.FibSaddr, Not: true}
	ports := nft.Concat{nft.L4Proto, nft.THDport}
	r.chain("services"+f.digit, nil,
		rule(f.is(), nft.In{Left: f.frontend(), Set: "guarded" + f.digit},
			nft.In{Left: append(nft.Concat{f.saddr}, f.frontend().(nft.Concat)...), Not: true, Set: "allowed" + f.digit}, drop),
		rule(f.is(), notPod, route(f.frontend(), "outside"+f.digit), notLocal, to("balance")),
		rule(f.is(), route(f.frontend(), "services"+f.digit), to("balance")),
		rule(f.is(), nft.FibIsLocal{Of: nft.FibDaddr}, f.loopback, to("node-ports"+f.digit)),
		rule(f.is(), nft.In{Left: f.daddr, Set: "node-addresses" + f.digit}, to("node-ports"+f.digit)))
	r.chain("node-ports"+f.digit, nil,
		rule(nft.IsName{Left: nft.IIFName, Not: true, Name: "cali", Wildcard: true}, route(ports, "outside-node-ports"+f.digit), notLocal, to("balance")),
		rule(nft.IsName{Left: nft.IIFName, Name: "cni0"}, route(ports, "node-ports"+f.digit), to("balance")))
	r.chain("refuse"+f.digit, nil,
		rule(f.is(), route(f.frontend(), "services"+f.digit), to("refused")),
		rule(f.is(), nft.In{Left: f.daddr, Set: "cluster-ips" + f.digit}, nft.Reject{}))
}

func (r *ruleset) balanceChains() {
	bits := func(mask, is uint32) nft.Statement {
		return nft.Is{Left: nft.Bits{Of: nft.Priority, Op: nft.And, By: mask}, Right: val().Uint32(is)}
	}
	bucket := nft.Bits{Of: nft.Priority, Op: nft.And, By: 0xffc}
	r.chain("balance", nil,
		rule(bits(3, 1), jump("masquerade-outside")), rule(bits(3, 2), jump("masquerade-all")), rule(bits(3, 3), jump("masquerade-node")),
		rule(nft.Vmap{Key: bucket, Map: "buckets"}))
	r.chain("masquerade-all", nil, rule(markAll))
	r.chain("masquerade-outside", nil, both(func(f family) []nft.Rule {
		notPod := nft.Is{Left: f.saddr, Not: true, Right: val().Addr(f.cidr.Masked().Addr()), Prefix: f.cidr.Bits()}
		return []nft.Rule{rule(f.is(), notPod, markAll)}
	})...)
	r.chain("masquerade-node", nil, rule(nft.FibIsLocal{Of: nft.FibSaddr}, markAll))
	r.chain("refuse-node-ports", nil, both(func(f family) []nft.Rule {
		ports := nft.Concat{nft.L4Proto, nft.THDport}
		return []nft.Rule{rule(f.is(), nft.In{Left: f.daddr, Set: "node-addresses" + f.digit}, route(ports, "node-ports"+f.digit), to("refused"))}
	})...)
	r.chain("refused", nil, rule(bits(0xffc, 0), nft.Reject{}), rule(drop))
}

func (r *ruleset) spreadChains() {
	count := rule(keepList, nft.In{Left: nft.Priority, Set: "connections"})
	r.chain("random-2", nil, append([]nft.Rule{count}, both(func(f family) []nft.Rule { return spread(f, false) })...)...)
	for _, f := range families {
		r.chain("affinity"+f.digit+"-2-10800s", nil, append([]nft.Rule{count}, affine(f)...)...)
	}
	r.chain("round-robin", nil, rule(nft.Vmap{Key: listOf, Map: "round-robin"}))
	r.chain("round-robin-8", nil, append([]nft.Rule{count}, both(func(f family) []nft.Rule { return spread(f, true) })...)...)
}

// virtualChains have what only packets for virtual servers need, and those that ask whether there is somebody.
func (r *ruleset) virtualChains() {
	marked := nft.Is{Left: nft.Bits{Of: nft.Mark, Op: nft.And, By: 0xffffe000}, Right: val().Uint32(0x2000)}
	r.chain("to-mark", &nft.Base{Type: nft.Filter, Hook: nft.Output, Priority: nft.PriorityMangle},
		rule(nft.SetMeta{Meta: nft.Mark, To: nft.Lookup{Key: listOf, Map: "marks"}}), rule(marked, nft.SetMeta{Meta: nft.Mark}))
	r.chain("past-ipvs", &nft.Base{Type: nft.Filter, Hook: nft.Input, Priority: 110})
	r.chain("refuse-tcp", nil, rule(l4proto(6), nft.Reject{Reset: true}), rule(nft.Reject{}))
	asked := []nft.CT{nft.CTOriginalDaddr, nft.CTOriginalDaddr6}
	for i, f := range families {
		itself := nft.Concat{f.saddr, asked[i], nft.L4Proto, nft.THDport}
		r.chain("asked"+f.digit, nil, rule(f.is(), nft.In{Left: itself, Not: true, Set: "hairpin" + f.digit}, drop))
	}
	r.chain("ping", &nft.Base{Type: nft.NAT, Hook: nft.Prerouting, Priority: nft.PriorityDstNAT},
		rule(families[0].is(), l4proto(nft.ProtoICMP), nft.Is{Left: nft.ICMPType, Right: val().Proto(nft.ICMPEchoRequest)},
			nft.In{Left: nft.IPDaddr, Set: "cluster-ips4"}, nft.DNATAddr{To: families[0].node}),
		rule(families[1].is(), l4proto(nft.ProtoICMP6), nft.Is{Left: nft.ICMP6Type, Right: val().Proto(nft.ICMP6EchoRequest)},
			nft.In{Left: nft.IP6Daddr, Set: "cluster-ips6"}, nft.DNATAddr{To: families[1].node}))
}

func l4proto(protocol uint8) nft.Statement {
	return nft.Is{Left: nft.L4Proto, Right: val().Proto(protocol)}
}

func spread(f family, inc bool) []nft.Rule {
	slot := nft.Concat{nft.Priority, nft.Numgen{Mod: 2, Incremental: inc}}
	return []nft.Rule{rule(f.is(), isTransport, nft.DNAT{IPv6: f.v6, To: nft.Lookup{Key: slot, Map: "endpoints" + f.digit}})}
}

func affine(f family) []nft.Rule {
	affinity := "affinity" + f.digit
	key := nft.Concat{listOf, f.saddr}
	update := nft.Update{Map: affinity, Key: key, Timeout: 3 * time.Hour, Data: nft.Priority}
	remove := nft.Remove{Map: affinity, Key: key, Data: nft.Priority}
	dnat := nft.DNAT{IPv6: f.v6, To: nft.Lookup{Key: nft.Priority, Map: "affine-endpoints" + f.digit}}
	slot := nft.Concat{nft.Priority, nft.Numgen{Mod: 2}}
	return append([]nft.Rule{
		rule(f.is(), isTransport, route(nft.Concat{nft.Priority, f.saddr}, affinity), update, dnat),
		rule(keepList),
		rule(f.is(), isTransport, route(slot, "affine-slots"+f.digit), remove, update, dnat),
		rule(keepList),
	}, spread(f, false)...)
}
