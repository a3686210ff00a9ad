package nft_test

import (
	"net/netip"
	"testing"
	"time"

	"sluice/internal/nft"
)

func v() nft.Value { return nft.Value{} }

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestRuleString(t *testing.T) {
	is := func(left nft.Expr, right nft.Value) nft.Is { return nft.Is{Left: left, Right: right} }
	frontend := nft.Concat{nft.IPDaddr, nft.L4Proto, nft.THDport}
	list := nft.Bits{Of: nft.Priority, Op: nft.And, By: 0xfffff000}
	tests := []struct {
		want string
		rule []nft.Statement
	}{
		{"meta nfproto ipv4", []nft.Statement{is(nft.NFProto, v().Proto(nft.ProtoIPv4))}},
		{"meta nfproto ipv6", []nft.Statement{is(nft.NFProto, v().Proto(nft.ProtoIPv6))}},
		{"meta l4proto sctp", []nft.Statement{is(nft.L4Proto, v().Proto(132))}},
		{"meta l4proto != 200", []nft.Statement{nft.Is{Left: nft.L4Proto, Not: true, Right: v().Proto(200)}}},
		{"th sport 80", []nft.Statement{is(nft.THSport, v().Port(80))}},
		{"meta mark 0x00004000", []nft.Statement{is(nft.Mark, v().Uint32(0x4000))}},
		{"meta priority abcd:1", []nft.Statement{is(nft.Priority, v().Uint32(0xabcd0001))}},
		{"meta priority & 0:ffc == 0:0", []nft.Statement{is(nft.Bits{Of: nft.Priority, Op: nft.And, By: 0xffc}, v().Uint32(0))}},
		{"ip saddr != 10.244.0.0/16", []nft.Statement{nft.Is{Left: nft.IPSaddr, Not: true, Right: v().Addr(ip("10.244.0.0")), Prefix: 16}}},
		{"ip6 daddr fd00::1", []nft.Statement{is(nft.IP6Daddr, v().Addr(ip("fd00::1")))}},
		{`iifname "lo"`, []nft.Statement{nft.IsName{Left: nft.IIFName, Name: "lo"}}},
		{`iifname != "cali*"`, []nft.Statement{nft.IsName{Left: nft.IIFName, Not: true, Name: "cali", Wildcard: true}}},
		{`iifname "cali\*"`, []nft.Statement{nft.IsName{Left: nft.IIFName, Name: "cali*"}}},
		{"ct state established,related", []nft.Statement{nft.HasBits{Left: nft.CTState, Bits: nft.StateEstablished | nft.StateRelated}}},
		{"ct status dnat", []nft.Statement{nft.HasBits{Left: nft.CTStatus, Bits: nft.StatusDNAT}}},
		{"ct status 0x1,dnat", []nft.Statement{nft.HasBits{Left: nft.CTStatus, Bits: nft.StatusDNAT | 1}}},
		{"fib saddr type != local", []nft.Statement{nft.FibIsLocal{Of: nft.FibSaddr, Not: true}}},
		{"ip daddr . meta l4proto . th dport @guarded4", []nft.Statement{nft.In{Left: frontend, Set: "guarded4"}}},
		{"ip saddr != @allowed4 drop", []nft.Statement{nft.In{Left: nft.IPSaddr, Not: true, Set: "allowed4"}, nft.Verdict{Kind: nft.Drop}}},
		{"meta l4proto { tcp, udp }", []nft.Statement{nft.OneOf{Left: nft.L4Proto, Type: nft.InetProto, List: []nft.Value{v().Proto(6), v().Proto(17)}}}},
		{"meta priority set 0:0", []nft.Statement{nft.SetMeta{Meta: nft.Priority}}},
		{"meta mark set 0x00000000", []nft.Statement{nft.SetMeta{Meta: nft.Mark}}},
		{"meta mark set meta mark | 0x00004000", []nft.Statement{nft.SetMeta{Meta: nft.Mark, To: nft.Bits{Of: nft.Mark, Op: nft.Or, By: 0x4000}}}},
		{"meta priority set ip daddr . meta l4proto . th dport map @services4 goto balance", []nft.Statement{
			nft.SetMeta{Meta: nft.Priority, To: nft.Lookup{Key: frontend, Map: "services4"}}, nft.Verdict{Kind: nft.Goto, Chain: "balance"},
		}},
		{"meta priority & 0:ffc vmap @buckets", []nft.Statement{nft.Vmap{Key: nft.Bits{Of: nft.Priority, Op: nft.And, By: 0xffc}, Map: "buckets"}}},
		{"dnat ip6 to meta priority . numgen random mod 3 map @endpoints6", []nft.Statement{
			nft.DNAT{IPv6: true, To: nft.Lookup{Key: nft.Concat{nft.Priority, nft.Numgen{Mod: 3}}, Map: "endpoints6"}},
		}},
		{"dnat ip to numgen inc mod 3 map @m", []nft.Statement{nft.DNAT{To: nft.Lookup{Key: nft.Numgen{Mod: 3, Incremental: true}, Map: "m"}}}},
		{"masquerade fully-random", []nft.Statement{nft.Masquerade{}}},
		{"reject", []nft.Statement{nft.Reject{}}},
		{"update @affinity4 { meta priority & ffff:f000 . ip saddr timeout 3h : meta priority }", []nft.Statement{
			nft.Update{Map: "affinity4", Key: nft.Concat{list, nft.IPSaddr}, Timeout: 3 * time.Hour, Data: nft.Priority},
		}},
		{"update @seen { ip saddr }", []nft.Statement{nft.Update{Map: "seen", Key: nft.IPSaddr}}},
		{"delete @affinity4 { ip saddr : meta priority }", []nft.Statement{nft.Remove{Map: "affinity4", Key: nft.IPSaddr, Data: nft.Priority}}},
		{"jump refuse", []nft.Statement{nft.Verdict{Kind: nft.Jump, Chain: "refuse"}}},
		{"return", []nft.Statement{nft.Verdict{Kind: nft.Return}}},
		{"accept", []nft.Statement{nft.Verdict{Kind: nft.Accept}}},
	}
	for _, tt := range tests {
		if got := (nft.Rule{Statements: tt.rule}).String(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestRuleComment(t *testing.T) {
	r := nft.Rule{Statements: []nft.Statement{nft.Reject{}}, Comment: `says "no"`}
	if got := r.String(); got != `reject comment "says 'no'"` {
		t.Error(got)
	}
}

func TestElementString(t *testing.T) {
	field := func(types ...nft.Type) (fields []nft.Field) {
		for _, typ := range types {
			fields = append(fields, nft.Field{Type: typ})
		}
		return fields
	}
	frontend := field(nft.IPv4Addr, nft.InetProto, nft.InetService)
	addr := field(nft.IPv4Addr)
	tests := []struct {
		want string
		set  nft.Set
		e    nft.Element
	}{
		{
			`10.96.0.10 . tcp . 80 comment "default/web:http" : 2:a014`,
			nft.Set{Key: frontend, Data: field(nft.ClassID)},
			nft.Element{Key: v().Addr(ip("10.96.0.10")).Proto(6).Port(80), Data: v().Uint32(0x2a014), Comment: "default/web:http"},
		},
		{"fd00::1", nft.Set{Key: field(nft.IPv6Addr)}, nft.Element{Key: v().Addr(ip("fd00::1"))}},
		{"10.1.0.0/16", nft.Set{Key: addr, Interval: true}, nft.Element{Key: v().Addr(ip("10.1.0.0")), End: v().Addr(ip("10.1.255.255"))}},
		{"0.0.0.0/0", nft.Set{Key: addr, Interval: true}, nft.Element{Key: v().Addr(ip("0.0.0.0")), End: v().Addr(ip("255.255.255.255"))}},
		{"10.1.0.0-10.1.255.254", nft.Set{Key: addr, Interval: true}, nft.Element{Key: v().Addr(ip("10.1.0.0")), End: v().Addr(ip("10.1.255.254"))}},
		{"10.1.0.1-10.2.0.0", nft.Set{Key: addr, Interval: true}, nft.Element{Key: v().Addr(ip("10.1.0.1")), End: v().Addr(ip("10.2.0.0"))}},
		{
			"10.1.0.0/31 . udp . 80-81",
			nft.Set{Key: frontend, Interval: true},
			nft.Element{Key: v().Addr(ip("10.1.0.0")).Proto(17).Port(80), End: v().Addr(ip("10.1.0.1")).Proto(17).Port(81)},
		},
		{
			"2:a000 . 10.0.0.1 timeout 3h expires 2h59m59s5ms : 2:a001",
			nft.Set{Key: field(nft.ClassID, nft.IPv4Addr), Data: field(nft.ClassID), Dynamic: true},
			nft.Element{Key: v().Uint32(0x2a000).Addr(ip("10.0.0.1")), Data: v().Uint32(0x2a001), Timeout: 3 * time.Hour, Expires: 3*time.Hour - 995*time.Millisecond},
		},
		{"2:a000 counter packets 7 bytes 0", nft.Set{Key: field(nft.ClassID), Counter: true}, nft.Element{Key: v().Uint32(0x2a000), Packets: 7}},
		{
			"0:14 : goto random-2",
			nft.Set{Key: field(nft.ClassID), Verdicts: true},
			nft.Element{Key: v().Uint32(0x14), Verdict: nft.Verdict{Kind: nft.Goto, Chain: "random-2"}},
		},
		{"0 : 10.0.0.1 . 65535", nft.Set{Key: field(nft.Integer), Data: field(nft.IPv4Addr, nft.InetService)}, nft.Element{Key: v().Uint32(0), Data: v().Addr(ip("10.0.0.1")).Port(65535)}},
		{"*", nft.Set{Key: frontend}, nft.Element{}},
	}
	for _, tt := range tests {
		if got := tt.set.ElementString(&tt.e); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
