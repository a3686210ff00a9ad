package wire_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/kernel/nfnl"
	"sluice/internal/nft"
	"sluice/internal/nft/wire"
	"sluice/internal/testkit/nstest"
)

// load writes a ruleset and removes it when the test ends.
func load(t *testing.T, r *ruleset) *nfnl.Conn {
	t.Helper()
	nstest.Require(t)
	commit(t, r.batch())
	t.Cleanup(func() {
		b := wire.NewBatch(r.table.Name)
		b.DeleteTable()
		conn, err := nfnl.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.Commit(context.Background(), b.Finish()); err != nil {
			t.Error(err)
		}
	})
	return open(t)
}

// dump decodes the answer to a request.
func dump[T any](t *testing.T, conn *nfnl.Conn, decode func(data []byte) (T, error), kind uint16, request []byte) (all []T) {
	t.Helper()
	err := conn.Dump(t.Context(), kind, request, func(_ uint16, data []byte) error {
		v, err := decode(data)
		all = append(all, v)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What was written is what a dump tells.
func TestObserve(t *testing.T) {
	r := proxy()
	conn := load(t, r)
	kind, data := wire.ListTables(wire.FamilyInet)
	tables := dump(t, conn, wire.DecodeTable, kind, data)
	if len(tables) != 1 || tables[0].Name != r.table.Name || tables[0].Comment != r.table.Comment || tables[0].Handle == 0 {
		t.Errorf("tables: %+v", tables)
	}
	r.hasSets(t, conn)
	r.hasChains(t, conn)
	for i := range r.sets {
		r.hasElements(t, conn, &r.sets[i])
	}
}

func (r *ruleset) hasSets(t *testing.T, conn *nfnl.Conn) {
	t.Helper()
	kind, data := wire.ListSets(r.table.Name)
	sets := slices.DeleteFunc(dump(t, conn, wire.DecodeSet, kind, data), wire.Set.Anonymous)
	if len(sets) != len(r.sets) {
		t.Errorf("%d sets, want %d", len(sets), len(r.sets))
	}
	for i := range r.sets {
		if !slices.ContainsFunc(sets, func(s wire.Set) bool { return s.Is(&r.sets[i]) }) {
			t.Errorf("no set is %s", r.sets[i].Name)
		}
	}
}

func (r *ruleset) hasChains(t *testing.T, conn *nfnl.Conn) {
	t.Helper()
	kind, data := wire.ListChains(wire.FamilyInet)
	chains := dump(t, conn, wire.DecodeChain, kind, data)
	if len(chains) != len(r.chains) {
		t.Errorf("%d chains, want %d", len(chains), len(r.chains))
	}
	for i, c := range r.chains {
		want := wire.Chain{Family: wire.FamilyInet, Table: r.table.Name, Name: c.Name, Handle: chains[i].Handle, Base: c.Base, Uses: chains[i].Uses, Comment: c.Comment}
		if c.Base != nil {
			want.Policy, want.Uses = 1, uint32(len(c.Rules))
		}
		if d := cmp.Diff(want, chains[i]); d != "" {
			t.Error(d)
		}
		kind, data := wire.ListRules(wire.FamilyInet, r.table.Name, c.Name)
		var got, hashes []uint64
		for _, rule := range dump(t, conn, wire.DecodeRule, kind, data) {
			got = append(got, rule.Hash)
		}
		for i := range c.Rules {
			hashes = append(hashes, wire.Hash(&c.Rules[i]))
		}
		if !slices.Equal(got, hashes) {
			t.Errorf("chain %s: rules %x, want %x", c.Name, got, hashes)
		}
	}
}

func (r *ruleset) hasElements(t *testing.T, conn *nfnl.Conn, s *nft.Set) {
	t.Helper()
	kind, data := wire.ListElements(r.table.Name, s.Name)
	var got []wire.Element
	err := conn.Dump(t.Context(), kind, data, func(_ uint16, data []byte) error {
		list, err := wire.DecodeElements(data)
		if err != nil || list.Set != s.Name || list.Table != r.table.Name {
			t.Errorf("elements of %s: %v", list.Set, err)
		}
		for e, err := range list.All() {
			if err != nil {
				return err
			}
			e.Expires = 0
			got = append(got, *e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []nft.Element
	for _, e := range r.elements[s.Name] {
		e.Comment, e.Expires = nft.CleanComment(e.Comment), 0
		want = append(want, e)
	}
	if d := cmp.Diff(texts(s, want), texts(s, joined(s, got))); d != "" {
		t.Errorf("elements of %s: %s", s.Name, d)
	}
}

func joined(s *nft.Set, raw []wire.Element) (all []nft.Element) {
	if s.Interval && len(s.Key) == 1 {
		return wire.Ranges(s, raw)
	}
	for i := range raw {
		all = append(all, raw[i].Element)
	}
	return all
}

func texts(s *nft.Set, elements []nft.Element) (all []string) {
	for i := range elements {
		all = append(all, s.ElementString(&elements[i]))
	}
	slices.Sort(all)
	return all
}

// One element is found by its key, and what is not there is said not to be.
func TestFindElement(t *testing.T) {
	r := proxy()
	conn := load(t, r)
	s := &r.sets[0]
	want := r.elements[s.Name][0]
	kind, data := wire.FindElement(r.table.Name, s, want.Key)
	var got []nft.Element
	err := conn.Get(t.Context(), kind, data, func(_ uint16, data []byte) error {
		got = append(got, decodeElements(t, data)...)
		return nil
	})
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%v: got %v, want %v", err, got, want)
	}
	kind, data = wire.FindElement(r.table.Name, s, val().Addr(ip("192.0.2.1")).Proto(6).Port(1))
	if err := conn.Get(t.Context(), kind, data, func(uint16, []byte) error { return nil }); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("got %v", err)
	}
}

// A refusal leads to the element.
func TestRefusedElement(t *testing.T) {
	r := proxy()
	conn := load(t, r)
	s := &r.sets[0]
	wrong := r.elements[s.Name][1]
	wrong.Data = val().Uint32(99)
	b := wire.NewBatch(r.table.Name)
	b.FlushChain("refused")
	for i := range uint16(100) {
		b.AddElement(s, &nft.Element{Key: val().Addr(ip("192.0.2.1")).Proto(6).Port(i), Data: val().Uint32(1)})
		if i == 50 {
			b.AddElement(s, &wrong)
		}
	}
	refused := &nfnl.Error{}
	if err := conn.Commit(t.Context(), b.Finish()); !errors.As(err, &refused) || !errors.Is(err, syscall.EEXIST) {
		t.Fatalf("got %v", err)
	}
	set, key, ok := b.Element(refused.Seq, refused.Offset)
	if !ok || set != s.Name || key != wrong.Key {
		t.Errorf("element %v of %q, %v", key, set, ok)
	}
	if _, _, ok := b.Element(1, refused.Offset); ok {
		t.Error("a message without elements has one")
	}
}

// Ranges come and go one by one.
func TestChangeRanges(t *testing.T) {
	s := nft.Set{Name: "ranges", Key: []nft.Field{{Type: nft.IPv4Addr}}, Interval: true}
	span := func(from, to string) nft.Element {
		return nft.Element{Key: val().Addr(ip(from)), End: val().Addr(ip(to))}
	}
	one, next, third := span("10.0.0.0", "10.0.0.255"), span("10.0.1.0", "10.0.1.255"), span("10.9.0.0", "10.9.0.7")
	r := &ruleset{table: nft.Table{Name: "sluice"}, sets: []nft.Set{s}, elements: map[string][]nft.Element{s.Name: {one, next}}}
	conn := load(t, r)
	r.hasElements(t, conn, &s)
	b := wire.NewBatch(r.table.Name)
	b.DeleteElement(&s, &one)
	b.AddElement(&s, &third)
	if err := conn.Commit(t.Context(), b.Finish()); err != nil {
		t.Fatal(err)
	}
	r.elements[s.Name] = []nft.Element{next, third}
	r.hasElements(t, conn, &s)
}

// Chains and elements go as they came.
func TestDelete(t *testing.T) {
	r := forms()
	conn := load(t, r)
	b := wire.NewBatch(r.table.Name)
	for _, c := range r.chains {
		b.FlushChain(c.Name)
	}
	for i := range r.sets {
		s := &r.sets[i]
		for j := range r.elements[s.Name] {
			b.DeleteElement(s, &r.elements[s.Name][j])
		}
	}
	for _, c := range r.chains {
		b.DeleteChain(c.Name)
	}
	if err := conn.Commit(t.Context(), b.Finish()); err != nil {
		t.Fatal(err)
	}
	got := program(t, "", "list", "table", "inet", r.table.Name)
	if regexp.MustCompile(`(?m)^\s*(chain|elements) `).MatchString(got) || strings.Count(got, "\n\t}") != len(r.sets) {
		t.Errorf("left:\n%s", got)
	}
}

// Rules that others wrote have no hash, and tell where they lead.
func TestForeignRules(t *testing.T) {
	nstest.Require(t)
	program(t, `table ip foreign {
		chain KUBE-SERVICES { }
		chain PREROUTING { counter jump KUBE-SERVICES comment "portals"; ip protocol tcp accept; tcp dport vmap { 80 : jump KUBE-SERVICES }; }
	}`, "-f", "-")
	defer program(t, "", "delete", "table", "ip", "foreign")
	kind, data := wire.ListRules(wire.FamilyIPv4, "foreign", "")
	rules := dump(t, open(t), wire.DecodeRule, kind, data)
	for i := range rules {
		rules[i].Handle = 0
	}
	rule := wire.Rule{Family: wire.FamilyIPv4, Table: "foreign", Chain: "PREROUTING"}
	jumps := rule
	jumps.Target, jumps.Comment = "KUBE-SERVICES", "portals"
	if d := cmp.Diff([]wire.Rule{jumps, rule, rule}, rules); d != "" {
		t.Error(d)
	}
}

// Notifications say what was changed, and at last of which state it is.
func TestNotifications(t *testing.T) {
	nstest.Require(t)
	listener, err := nfnl.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	program(t, "table inet sluice {\nset s { type ipv4_addr; elements = { 192.0.2.1 } }\nchain d { }\nchain c { jump d; }\n}", "-f", "-")
	defer program(t, "", "delete", "table", "inet", "sluice")
	var heard []any
	for done := false; !done; {
		err := listener.Receive(t.Context(), func(kind uint16, _ uint32, data []byte) {
			v, err := decode(kind, data)
			if err != nil {
				t.Errorf("message %d: %v", kind, err)
			}
			_, done = v.(wire.Generation)
			heard = append(heard, v)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	now, err := open(t).Generation(t.Context())
	if got := heard[len(heard)-1]; err != nil || got != wire.Generation(now) {
		t.Errorf("heard of generation %v, and it is %d; error %v", got, now, err)
	}
	kinds := map[string]int{}
	for _, v := range heard {
		kinds[fmt.Sprintf("%T", v)]++
	}
	want := map[string]int{"wire.Table": 1, "wire.Set": 1, "wire.Elements": 1, "wire.Chain": 2, "wire.Rule": 1, "wire.Generation": 1}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Error(d)
	}
}

func decode(kind uint16, data []byte) (any, error) {
	switch kind {
	case wire.NewTable:
		return wire.DecodeTable(data)
	case wire.NewChain:
		return wire.DecodeChain(data)
	case wire.NewSet:
		return wire.DecodeSet(data)
	case wire.NewElement:
		return wire.DecodeElements(data)
	case wire.NewRule:
		return wire.DecodeRule(data)
	case wire.NewGen:
		return wire.DecodeGeneration(data)
	}
	return nil, fmt.Errorf("unexpected kind %d", kind)
}
