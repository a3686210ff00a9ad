package nftwalk

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"sluice/internal/model"
	"sluice/internal/nft"
	"sluice/internal/plan"
	"sluice/internal/testkit/golden"
	"sluice/internal/testkit/oracle"
	"sluice/internal/trace"
)

var host = Host{Addrs: []netip.Addr{netip.MustParseAddr("192.168.7.5"), netip.MustParseAddr("fd00:7::5")}}

// table is a Ruleset in memory. Its sets have no intervals.
type table struct {
	chains   []*nft.Chain
	sets     map[string]*nft.Set
	elements map[string]map[nft.Value]nft.Element
}

func (t *table) Chains() []*nft.Chain { return t.chains }

func (t *table) Chain(name string) *nft.Chain {
	for _, c := range t.chains {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (t *table) Set(name string) *nft.Set { return t.sets[name] }

func (t *table) Find(set string, key nft.Value) (nft.Element, bool) {
	e, ok := t.elements[set][key]
	return e, ok
}

// set declares a set with its elements.
func (t *table) set(s nft.Set, elements ...nft.Element) *table {
	if t.sets == nil {
		t.sets, t.elements = map[string]*nft.Set{}, map[string]map[nft.Value]nft.Element{}
	}
	t.sets[s.Name] = &s
	t.elements[s.Name] = map[nft.Value]nft.Element{}
	for _, e := range elements {
		t.elements[s.Name][e.Key] = e
	}
	return t
}

// rule adds a rule to a chain. Those that bases has are base chains.
func (t *table) rule(chain string, statements ...nft.Statement) *table {
	c := t.Chain(chain)
	if c == nil {
		c = &nft.Chain{Name: chain, Base: bases[chain]}
		t.chains = append(t.chains, c)
	}
	c.Rules = append(c.Rules, nft.Rule{Statements: statements})
	return t
}

var bases = map[string]*nft.Base{
	"pre":           {Type: nft.NAT, Hook: nft.Prerouting, Priority: nft.PriorityDstNAT},
	"output":        {Type: nft.NAT, Hook: nft.Output, Priority: nft.PriorityDstNAT},
	"post":          {Type: nft.NAT, Hook: nft.Postrouting, Priority: nft.PrioritySrcNAT},
	"input":         {Type: nft.Filter, Hook: nft.Input, Priority: nft.PriorityFilter},
	"forward":       {Type: nft.Filter, Hook: nft.Forward, Priority: nft.PriorityFilter},
	"filter-output": {Type: nft.Filter, Hook: nft.Output, Priority: nft.PriorityFilter},
	"mangle-output": {Type: nft.Filter, Hook: nft.Output, Priority: nft.PriorityMangle},
	"late-input":    {Type: nft.Filter, Hook: nft.Input, Priority: 110},
	"filter-pre":    {Type: nft.Filter, Hook: nft.Prerouting, Priority: nft.PriorityFilter},
}

func packet(from, to string) plan.Packet {
	p := plan.Packet{From: netip.MustParseAddr(from), To: netip.MustParseAddrPort(to), Protocol: model.TCP}
	if host.local(p.From) {
		p.Via = plan.ViaLocal
	}
	return p
}

// What the tests say of packets.
var (
	isTCP      = nft.Is{Left: nft.L4Proto, Right: nft.Value{}.Proto(6)}
	isUDP      = nft.Is{Left: nft.L4Proto, Right: nft.Value{}.Proto(17)}
	isV4       = nft.Is{Left: nft.NFProto, Right: nft.Value{}.Proto(2)}
	drop       = nft.Verdict{Kind: nft.Drop}
	accept     = nft.Verdict{Kind: nft.Accept}
	back       = nft.Verdict{Kind: nft.Return}
	priority1  = nft.SetMeta{Meta: nft.Priority, To: nft.Lookup{Key: nft.IPDaddr, Map: "one"}}
	classID    = []nft.Field{{Type: nft.ClassID}}
	numbered   = []nft.Field{{Type: nft.ClassID}, {Type: nft.Integer, Like: nft.Numgen{Mod: 2}}}
	endpoint   = []nft.Field{{Type: nft.IPv4Addr}, {Type: nft.InetService}}
	toEndpoint = nft.DNAT{To: nft.Lookup{Key: nft.Priority, Map: "endpoints"}}
)

func jump(chain string) nft.Statement { return nft.Verdict{Kind: nft.Jump, Chain: chain} }
func goTo(chain string) nft.Statement { return nft.Verdict{Kind: nft.Goto, Chain: chain} }

func priorityIs(n uint32) nft.Statement {
	return nft.Is{Left: nft.Priority, Right: nft.Value{}.Uint32(n)}
}

func setPriority(n uint32) nft.Statement {
	return nft.SetMeta{Meta: nft.Priority, To: nft.Bits{Of: nft.Bits{Of: nft.Priority, Op: nft.And}, Op: nft.Or, By: n}}
}

func slot(list, n uint32) nft.Value { return nft.Value{}.Uint32(list).Uint32(n) }

func addrPort(text string) nft.Value {
	a := netip.MustParseAddrPort(text)
	return nft.Value{}.Addr(a.Addr()).Port(a.Port())
}

// world has a few sets: one maps 10.9.9.9 to 1, endpoints maps 1 to an endpoint, and slots have two for 1 and a gap
// for 2. The map memory is filled by rules.
func world() *table {
	daddr, any4 := netip.MustParseAddr("10.9.9.9"), []nft.Field{{Type: nft.IPv4Addr}}
	return new(table).
		set(nft.Set{Name: "one", Key: any4, Data: classID}, nft.Element{Key: nft.Value{}.Addr(daddr), Data: nft.Value{}.Uint32(1), Comment: "ns/one"}).
		set(nft.Set{Name: "empty", Key: any4, Data: classID}).
		set(nft.Set{Name: "memory", Key: any4, Data: classID, Dynamic: true}).
		set(nft.Set{Name: "endpoints", Key: classID, Data: endpoint}, nft.Element{Key: nft.Value{}.Uint32(1), Data: addrPort("1.1.1.1:1")}).
		set(
			nft.Set{Name: "slots", Key: numbered, Data: endpoint},
			nft.Element{Key: slot(1, 0), Data: addrPort("1.1.1.1:1")},
			nft.Element{Key: slot(1, 1), Data: addrPort("2.2.2.2:2")},
			nft.Element{Key: slot(2, 0), Data: addrPort("1.1.1.1:1")},
		).
		set(
			nft.Set{Name: "ways", Key: classID, Verdicts: true},
			nft.Element{Key: nft.Value{}.Uint32(1), Verdict: nft.Verdict{Kind: nft.Goto, Chain: "here"}},
		)
}

// Each case is rules for a packet from 10.1.1.1 to 10.9.9.9:80.
func TestRules(t *testing.T) {
	random := func(mod uint32) nft.Expr { return nft.Concat{nft.Priority, nft.Numgen{Mod: mod}} }
	toSlot := func(mod uint32) nft.Statement { return nft.DNAT{To: nft.Lookup{Key: random(mod), Map: "slots"}} }
	for name, c := range map[string]struct {
		rules *table
		want  string
	}{
		"no rules":        {world(), "unhandled"},
		"dnat":            {world().rule("pre", isV4, isTCP, priority1, toEndpoint), "forward 1.1.1.1:1=1"},
		"to one address":  {world().rule("pre", isV4, nft.DNATAddr{To: netip.MustParseAddr("1.1.1.1")}), "forward 1.1.1.1:80=1"},
		"other protocol":  {world().rule("pre", isUDP, priority1, toEndpoint), "unhandled"},
		"prefix":          {world().rule("pre", nft.Is{Left: nft.IPSaddr, Right: nft.Value{}.Addr(netip.MustParseAddr("10.0.0.0")), Prefix: 8}, priority1, toEndpoint), "forward 1.1.1.1:1=1"},
		"not in prefix":   {world().rule("pre", nft.Is{Left: nft.IPSaddr, Not: true, Right: nft.Value{}.Addr(netip.MustParseAddr("10.0.0.0")), Prefix: 8}, priority1, toEndpoint), "unhandled"},
		"one of":          {world().rule("pre", nft.OneOf{Left: nft.L4Proto, List: []nft.Value{nft.Value{}.Proto(17), nft.Value{}.Proto(6)}}, priority1, toEndpoint), "forward 1.1.1.1:1=1"},
		"other family":    {world().rule("pre", nft.Is{Left: nft.IP6Daddr, Not: true, Right: nft.Value{}.Addr(netip.IPv6Loopback())}, priority1, toEndpoint), "unhandled"},
		"in a set":        {world().rule("pre", nft.In{Left: nft.IPDaddr, Set: "one"}, drop), "drop"},
		"not in a set":    {world().rule("pre", nft.In{Left: nft.IPDaddr, Set: "empty", Not: true}, drop), "drop"},
		"random":          {world().rule("pre", priority1, toSlot(2)), "forward 1.1.1.1:1=0.5 2.2.2.2:2=0.5"},
		"a slot is empty": {world().rule("pre", priority1, toSlot(3)), "forward 1.1.1.1:1=0.3333 2.2.2.2:2=0.3333 or unhandled=0.3333"},
		"a miss is followed by the next rule, with what the rule changed": {
			world().rule("pre", setPriority(2), nft.In{Left: nft.IPDaddr, Set: "empty"}, accept).
				rule("pre", priorityIs(2), toSlot(2)).
				rule("pre", priorityIs(2), setPriority(1), toSlot(2)),
			"forward 1.1.1.1:1=0.75 2.2.2.2:2=0.25",
		},
		"a miss changes nothing":       {world().rule("pre", nft.SetMeta{Meta: nft.Priority, To: nft.Lookup{Key: nft.IPDaddr, Map: "empty"}}, drop).rule("pre", priorityIs(0), drop), "drop"},
		"nil sets 0":                   {world().rule("pre", setPriority(1)).rule("pre", nft.SetMeta{Meta: nft.Priority}).rule("pre", priorityIs(0), drop), "drop"},
		"jump comes back":              {world().rule("pre", jump("a")).rule("pre", toEndpoint).rule("a", priority1, back).rule("a", drop), "forward 1.1.1.1:1=1"},
		"jump at the end comes back":   {world().rule("pre", jump("a")).rule("pre", drop).rule("a", isUDP, drop), "drop"},
		"goto returns to the caller":   {world().rule("pre", jump("a")).rule("pre", drop).rule("a", goTo("b")).rule("a", accept).rule("b", isUDP, accept), "drop"},
		"goto from a base chain ends":  {world().rule("pre", goTo("a")).rule("pre", drop).rule("a", back), "unhandled"},
		"return from a base chain":     {world().rule("pre", back).rule("pre", drop), "unhandled"},
		"vmap":                         {world().rule("pre", priority1, nft.Vmap{Key: nft.Priority, Map: "ways"}).rule("pre", drop).rule("here", toEndpoint), "forward 1.1.1.1:1=1"},
		"vmap without":                 {world().rule("pre", nft.Vmap{Key: nft.Priority, Map: "ways"}).rule("pre", drop), "drop"},
		"a translation ends its chain": {world().rule("pre", priority1, toEndpoint).rule("pre", drop), "forward 1.1.1.1:1=1"},
		"status":                       {world().rule("pre", priority1, toEndpoint).rule("forward", nft.HasBits{Left: nft.CTStatus, Bits: nft.StatusDNAT}, accept).rule("forward", drop), "forward 1.1.1.1:1=1"},
		"status of one that stays": {
			world().set(nft.Set{Name: "endpoints", Key: classID, Data: endpoint}, nft.Element{Key: nft.Value{}.Uint32(1), Data: addrPort("10.9.9.9:80")}).
				rule("pre", priority1, toEndpoint).rule("forward", nft.HasBits{Left: nft.CTStatus, Bits: nft.StatusDNAT}, drop),
			"forward 10.9.9.9:80=1",
		},
		"state":         {world().rule("forward", nft.HasBits{Left: nft.CTState, Bits: nft.StateNew}, nft.Reject{}), "reject"},
		"never invalid": {world().rule("forward", nft.HasBits{Left: nft.CTState, Bits: nft.StateInvalid | nft.StateEstablished}, drop), "unhandled"},
		"masquerade by mark": {
			world().rule("pre", nft.SetMeta{Meta: nft.Mark, To: nft.Bits{Of: nft.Mark, Op: nft.Or, By: 4}}, priority1, toEndpoint).
				rule("post", nft.Is{Left: nft.Bits{Of: nft.Mark, Op: nft.And, By: 4}, Right: nft.Value{}.Uint32(4)}, nft.Masquerade{}),
			"forward 1.1.1.1:1=1m",
		},
		"source is not local":      {world().rule("pre", nft.FibIsLocal{Of: nft.FibSaddr, Not: true}, drop), "drop"},
		"destination is not local": {world().rule("pre", nft.FibIsLocal{Of: nft.FibDaddr}, drop), "unhandled"},
		"a new client":             {world().rule("pre", nft.Update{Map: "memory", Key: nft.IPSaddr}, nft.SetMeta{Meta: nft.Priority, To: nft.Lookup{Key: nft.IPSaddr, Map: "memory"}}, drop), "unhandled"},
		"by chance a drop":         {world().rule("pre", priority1, nft.Is{Left: nft.Numgen{Mod: 4, Incremental: true}, Right: nft.Value{}.Uint32(3)}, drop).rule("pre", toEndpoint), "forward 1.1.1.1:1=0.75 or drop=0.25"},
		"not known":                {world().rule("pre", nft.Is{Left: nft.THSport, Right: nft.Value{}.Port(1)}, drop).rule("pre", priority1, toEndpoint), "forward 1.1.1.1:1=1 ? or drop=0"},
		"not known, not met":       {world().rule("pre", isUDP, nft.Is{Left: nft.THSport, Right: nft.Value{}.Port(1)}, drop), "unhandled"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Walk(c.rules, packet("10.1.1.1", "10.9.9.9:80"), host)
			if got := oracle.Short(r); got != c.want {
				t.Errorf("got  %s\nwant %s\n%+v", got, c.want, r)
			}
			checkShares(t, r)
		})
	}
}

func TestRouteLocalnet(t *testing.T) {
	rs := new(table).rule("input", nft.IsName{Left: nft.IIFName, Not: true, Name: "lo"}, nft.Reject{})
	open := Host{RouteLocalnet: true}
	for _, c := range []struct {
		host Host
		to   string
		want string
	}{{host, "127.0.0.1:80", "drop"}, {open, "127.0.0.1:80", "reject"}, {open, "[::1]:80", "drop"}} {
		if got := oracle.Short(Walk(rs, plan.Packet{From: netip.MustParseAddr("10.1.1.1"), To: netip.MustParseAddrPort(c.to), Protocol: model.TCP}, c.host)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.to, got, c.want)
		}
	}
}

// What a process sends to the node itself comes in again by the loopback, and nat is not asked twice.
func TestLocal(t *testing.T) {
	rs := new(table).
		rule("pre", drop).
		rule("output", isUDP, accept).
		rule("filter-pre", setPriority(7)).
		rule("input", nft.IsName{Left: nft.IIFName, Name: "l", Wildcard: true}, priorityIs(7), nft.Reject{})
	if got, want := oracle.Short(Walk(rs, packet("192.168.7.5", "192.168.7.5:80"), host)), "reject"; got != want {
		t.Errorf("to the node: got %s, want %s", got, want)
	}
	if got, want := oracle.Short(Walk(rs, packet("192.168.7.5", "10.9.9.9:80"), host)), "unhandled"; got != want {
		t.Errorf("to others: got %s, want %s", got, want)
	}
}

// Of what it is not told a walk speaks: the interface, and whether the client was there before.
func TestWarnings(t *testing.T) {
	rs := world().rule("pre", nft.IsName{Left: nft.IIFName, Not: true, Name: "cali", Wildcard: true}, nft.In{Left: nft.IPSaddr, Set: "memory"}, drop)
	r := Walk(rs, packet("10.1.1.1", "10.9.9.9:80"), host)
	if all := strings.Join(r.Warnings, "\n"); !strings.Contains(all, "interface") || !strings.Contains(all, "affinity") {
		t.Errorf("warnings %q", all)
	}
	named := packet("10.1.1.1", "10.9.9.9:80")
	named.Interface = "cali7"
	if r := Walk(rs, named, host); len(r.Warnings) > 0 {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestFaults(t *testing.T) {
	explosion := new(table).rule("pre", goTo("c0"))
	for i := range 40 {
		at, next := fmt.Sprint("c", i), fmt.Sprint("c", i+1)
		explosion.rule(at, jump(next)).rule(at, jump(next))
	}
	explosion.rule("c40", back)
	for want, rs := range map[string]*table{
		"chain a leads back to itself: pre → a → b → a": new(table).rule("pre", jump("a")).rule("a", jump("b")).rule("b", goTo("a")),
		"leads to chain gone, which is not there":       new(table).rule("pre", goTo("gone")),
		"asks for gone, which is not there":             new(table).rule("pre", nft.In{Left: nft.IPDaddr, Set: "gone"}, drop),
		"too many ways":                                 explosion,
		"too many ways through":                         new(table).rule("pre", nft.SetMeta{Meta: nft.Mark, To: nft.Numgen{Mod: math.MaxUint32}}),
	} {
		r := Walk(rs, packet("10.1.1.1", "10.9.9.9:80"), host)
		if !strings.Contains(r.Error, want) || !r.Uncertain {
			t.Errorf("error %q, uncertain %v; want %q", r.Error, r.Uncertain, want)
		}
	}
}

func TestManyEndpoints(t *testing.T) {
	const n = 10_000
	var elements []nft.Element
	for i := range n {
		elements = append(elements, nft.Element{Key: slot(1, uint32(i)), Data: addrPort(fmt.Sprintf("10.50.%d.%d:80", i/250, i%250))})
	}
	rs := world().set(nft.Set{Name: "many", Key: numbered, Data: endpoint}, elements...).
		rule("pre", priority1, nft.DNAT{To: nft.Lookup{Key: nft.Concat{nft.Priority, nft.Numgen{Mod: n}}, Map: "many"}}).
		rule("post", nft.HasBits{Left: nft.CTStatus, Bits: nft.StatusDNAT}, nft.Masquerade{})
	r := Walk(rs, packet("10.1.1.1", "10.9.9.9:80"), host)
	if len(r.Endpoints) != n || len(r.Steps) != 2 || r.Error != "" {
		t.Fatalf("%d endpoints, %d steps, error %q", len(r.Endpoints), len(r.Steps), r.Error)
	}
	checkShares(t, r)
}

func TestGolden(t *testing.T) {
	rs := world().
		rule("pre", isV4, goTo("services")).
		rule("services", priority1, goTo("balance")).
		rule("balance", nft.SetMeta{Meta: nft.Mark, To: nft.Bits{Of: nft.Mark, Op: nft.Or, By: 0x4000}}).
		rule("balance", nft.Vmap{Key: nft.Priority, Map: "ways"}).
		rule("here", isTCP, nft.DNAT{To: nft.Lookup{Key: nft.Concat{nft.Priority, nft.Numgen{Mod: 2}}, Map: "slots"}}).
		rule("forward", nft.In{Left: nft.IPDaddr, Set: "one", Not: true}, nft.SetMeta{Meta: nft.Priority}, accept)
	var text bytes.Buffer
	if err := Walk(rs, packet("10.1.1.1", "10.9.9.9:80"), host).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "walk.txt", text.String())
}

// checkShares wants nothing lost: the shares of all ends come to 1; within one verdict, where nobody knows more.
func checkShares(t testing.TB, r trace.Result) {
	t.Helper()
	var sum float64
	for _, e := range r.Endpoints {
		sum += e.Probability
	}
	if r.Verdict != trace.Forward {
		return
	}
	if !r.Uncertain {
		for _, a := range r.Alternatives {
			sum += a.Probability
		}
	}
	if math.Abs(sum-1) > 1e-6 {
		t.Fatalf("all comes to %g: %s", sum, oracle.Short(r))
	}
}
