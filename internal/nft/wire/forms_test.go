package wire_test

import (
	"bytes"
	"time"

	"sluice/internal/nft"
)

// forms is a table with the forms of statements and sets that the proxy's table does without.
func forms() *ruleset {
	r := &ruleset{table: nft.Table{Name: "sluice"}, elements: map[string][]nft.Element{}}
	for _, f := range families {
		r.add(nft.Set{Name: "plain" + f.digit, Key: []nft.Field{f.field, f.field}, Data: []nft.Field{f.field}})
		r.add(nft.Set{Name: "typed" + f.digit, Key: []nft.Field{f.byAddr}, Data: []nft.Field{port}},
			nft.Element{Key: val().Addr(f.pod), Data: val().Port(443)})
		r.add(nft.Set{Name: "ranges" + f.digit, Key: []nft.Field{f.field, port}, Data: []nft.Field{classid}, Interval: true, Size: 100, Comment: "with data"},
			nft.Element{Key: val().Addr(f.pod).Port(80), End: val().Addr(f.pod.Next().Next().Next()).Port(90), Data: val().Uint32(9), Comment: "some"})
		r.add(nft.Set{Name: "seen" + f.digit, Key: []nft.Field{f.field}, Dynamic: true, Timeout: 36*time.Hour + 1500*time.Millisecond, Size: 10, Counter: true})
		r.add(nft.Set{Name: "all" + f.digit, Key: []nft.Field{f.field}, Interval: true},
			nft.Element{Key: nft.ValueOf(make([]byte, len(f.pod.AsSlice()))), End: nft.ValueOf(bytes.Repeat([]byte{0xff}, len(f.pod.AsSlice()))), Comment: "every address"})
		r.add(nft.Set{Name: "verdicts" + f.digit, Key: []nft.Field{byList, f.byAddr}, Verdicts: true},
			nft.Element{Key: val().Uint32(1).Addr(f.pod), Verdict: drop}, nft.Element{Key: val().Uint32(2).Addr(f.pod), Verdict: accept},
			nft.Element{Key: val().Uint32(3).Addr(f.pod), Verdict: verdict(nft.Return)}, nft.Element{Key: val().Uint32(4).Addr(f.pod), Verdict: jump("end")})
	}
	r.add(nft.Set{Name: "protocols", Key: []nft.Field{proto}}, nft.Element{Key: val().Proto(6)}, nft.Element{Key: val().Proto(200)})
	r.add(nft.Set{Name: "ports", Key: []nft.Field{port}, Verdicts: true}, nft.Element{Key: val().Port(80), Verdict: to("end")})
	r.add(nft.Set{Name: "cursor", Key: []nft.Field{byNumgen}, Data: []nft.Field{byList}}, nft.Element{Key: val().Uint32(1), Data: val().Uint32(0xffff0001)})
	r.chain("end", nil)
	r.chains[0].Comment = `quoted "end" of ways`
	r.chain("empty", &nft.Base{Type: nft.Filter, Hook: nft.Output, Priority: -7})
	r.chain("late", &nft.Base{Type: nft.NAT, Hook: nft.Input, Priority: nft.PrioritySrcNAT})
	r.chain("statements", nil, statements()...)
	return r
}

func statements() []nft.Rule {
	is := func(left nft.Expr, right nft.Value) nft.Is { return nft.Is{Left: left, Right: right} }
	not := func(left nft.Expr, right nft.Value) nft.Is { return nft.Is{Left: left, Right: right, Not: true} }
	bits := func(of nft.Expr, op nft.BitOp, by uint32) nft.Bits { return nft.Bits{Of: of, Op: op, By: by} }
	set := func(m nft.Meta, to nft.Expr) nft.Statement { return nft.SetMeta{Meta: m, To: to} }
	states := nft.StateInvalid | nft.StateEstablished | nft.StateRelated | nft.StateNew
	rules := []nft.Rule{
		rule(is(nft.Mark, val().Uint32(0x10)), not(nft.Mark, val().Uint32(0xfffffff0)), verdict(nft.Return)),
		rule(is(nft.Priority, val().Uint32(0xabcd0001)), not(bits(nft.Priority, nft.And, 0xfffffff0), val().Uint32(0x10)), accept),
		rule(is(nft.L4Proto, val().Proto(6)), not(nft.L4Proto, val().Proto(200)), is(nft.THDport, val().Port(80)), not(nft.THSport, val().Port(81))),
		rule(set(nft.Mark, nil), set(nft.Priority, nil), set(nft.Mark, bits(nft.Mark, nft.Xor, 0xff)), set(nft.Priority, bits(nft.Priority, nft.Or, 0x50001))),
		rule(nft.HasBits{Left: nft.CTState, Bits: states}, jump("end")),
		rule(nft.IsName{Left: nft.IIFName, Name: "eth0"}, nft.IsName{Left: nft.IIFName, Name: "v", Wildcard: true}, nft.Reject{}),
		rule(nft.IsName{Left: nft.IIFName, Name: "fifteen-letters", Not: true}, drop),
		rule(nft.In{Left: nft.L4Proto, Set: "protocols"}, nft.Vmap{Key: nft.THDport, Map: "ports"}),
		rule(set(nft.Priority, nft.Lookup{Key: nft.Numgen{Mod: 7, Incremental: true}, Map: "cursor"})),
		rule(nft.OneOf{Left: nft.L4Proto, Type: nft.InetProto, List: protocols}, nft.OneOf{Left: nft.THDport, Type: nft.InetService, List: []nft.Value{val().Port(80), val().Port(443)}}),
		{Statements: []nft.Statement{drop}, Comment: `a "comment"`},
	}
	for _, f := range families {
		rules = append(rules, prefixes(f)...)
		update := nft.Update{Map: "seen" + f.digit, Key: f.saddr, Timeout: 90 * time.Minute}
		rules = append(rules,
			rule(f.is(), nft.Reject{}),
			rule(f.is(), update),
			rule(f.is(), nft.OneOf{Left: f.saddr, Type: f.field.Type, List: []nft.Value{val().Addr(f.pod), val().Addr(f.node)}}, drop))
	}
	return rules
}

func prefixes(f family) (rules []nft.Rule) {
	length := 8 * len(f.pod.AsSlice())
	for _, bits := range []int{0, 1, 7, 8, 9, 16, 24, 31, length - 1, length} {
		for _, not := range []bool{false, true} {
			value := val().Addr(f.pod)
			if p, err := f.pod.Prefix(bits); err == nil && bits > 0 {
				value = val().Addr(p.Addr())
			}
			rules = append(rules, rule(f.is(), nft.Is{Left: f.daddr, Not: not, Right: value, Prefix: bits}, accept))
		}
	}
	return rules
}
