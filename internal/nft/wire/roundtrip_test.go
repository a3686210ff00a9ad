package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/nft"
	"sluice/internal/nft/wire"
)

var fieldTypes = []nft.Type{nft.IPv4Addr, nft.IPv6Addr, nft.InetProto, nft.InetService, nft.ClassID, nft.Integer, nft.PacketMark}

func drawFields(t *rapid.T, label string, least, most int) (fields []nft.Field) {
	size := 0
	for _, typ := range rapid.SliceOfN(rapid.SampledFrom(fieldTypes), least, most).Draw(t, label) {
		if size += (typ.Size() + 3) &^ 3; size <= 40 {
			fields = append(fields, nft.Field{Type: typ})
		}
	}
	return fields
}

func drawSet(t *rapid.T) *nft.Set {
	s := &nft.Set{
		Name:    rapid.StringMatching(`[a-z][a-z0-9-]{0,20}`).Draw(t, "name"),
		Comment: rapid.String().Draw(t, "comment"),
		Key:     drawFields(t, "key", 1, 4),
		Size:    rapid.Uint32().Draw(t, "size"),
		Counter: rapid.Bool().Draw(t, "counter"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		s.Verdicts = true
	case 1:
		s.Data = drawFields(t, "data", 1, 2)
	case 2:
		s.Interval = true
	case 3:
		s.Dynamic = true
		s.Timeout = time.Duration(rapid.Uint16().Draw(t, "timeout")) * time.Millisecond
	}
	return s
}

func drawValue(t *rapid.T, label string, fields []nft.Field) (v nft.Value) {
	var b []byte
	for _, f := range fields {
		size := f.Type.Size()
		b = append(b, rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, label)...)
		b = append(b, make([]byte, -size&3)...)
	}
	return nft.ValueOf(b)
}

func drawElement(t *rapid.T, s *nft.Set) (e nft.Element) {
	e.Key = drawValue(t, "key", s.Key)
	e.Comment = rapid.String().Draw(t, "comment")
	if s.Interval && len(s.Key) > 1 && rapid.Bool().Draw(t, "range") {
		e.End = drawValue(t, "end", s.Key)
	}
	if len(s.Data) > 0 {
		e.Data = drawValue(t, "data", s.Data)
	}
	if s.Verdicts {
		e.Verdict.Kind = nft.VerdictKind(rapid.IntRange(1, 5).Draw(t, "verdict"))
		if e.Verdict.Kind >= nft.Jump {
			e.Verdict.Chain = rapid.StringMatching(`[a-z]{1,30}`).Draw(t, "chain")
		}
	}
	if s.Dynamic {
		e.Timeout = time.Duration(rapid.Uint32().Draw(t, "timeout")) * time.Millisecond
		e.Expires = time.Duration(rapid.Uint32().Draw(t, "expires")) * time.Millisecond
	}
	if s.Counter {
		e.Packets = rapid.Uint64().Draw(t, "packets")
	}
	return e
}

func TestElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSet(t)
		b := wire.NewBatch("sluice")
		var want, got []nft.Element
		for range rapid.IntRange(1, 20).Draw(t, "count") {
			e := drawElement(t, s)
			b.AddElement(s, &e)
			if e.Comment = nft.CleanComment(e.Comment); e.End == e.Key {
				e.End = nft.Value{}
			}
			want = append(want, e)
		}
		for _, m := range messages(t, b.Finish()) {
			if m.kind == wire.NewElement {
				got = append(got, decodeElements(t, m.data)...)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got:\n%v\nwant:\n%v", got, want)
		}
	})
}

// decodeElements reads a message, without what is behind ranges.
func decodeElements(t rapid.TB, data []byte) (all []nft.Element) {
	t.Helper()
	list, err := wire.DecodeElements(data)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range list.All() {
		if err != nil {
			t.Fatal(err)
		}
		if !e.Behind {
			all = append(all, e.Element)
		}
	}
	return all
}

// Ranges are found again in whichever order their ends are told, also where one ends just before the next.
func TestRanges(t *testing.T) {
	s := &nft.Set{Name: "ports", Key: []nft.Field{port}, Interval: true}
	rapid.Check(t, func(t *rapid.T) {
		ports := rapid.SliceOfNDistinct(rapid.Uint16(), 2, 20, rapid.ID).Draw(t, "ports")
		slices.Sort(ports)
		b := wire.NewBatch("sluice")
		var want []nft.Element
		for i := 0; i+1 < len(ports); i += 2 {
			e := nft.Element{Key: val().Port(ports[i]), End: val().Port(ports[i+1])}
			want = append(want, e)
			b.AddElement(s, &e)
		}
		list, err := wire.DecodeElements(messages(t, b.Finish())[1].data)
		if err != nil {
			t.Fatal(err)
		}
		var raw []wire.Element
		for e := range list.All() {
			raw = append(raw, *e)
		}
		for i := range raw {
			j := rapid.IntRange(0, i).Draw(t, "swap")
			raw[i], raw[j] = raw[j], raw[i]
		}
		if d := cmp.Diff(want, wire.Ranges(s, raw), values); d != "" {
			t.Error(d)
		}
	})
}

var values = cmp.Comparer(func(a, b nft.Value) bool { return a == b })

func TestSetIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSet(t)
		b := wire.NewBatch("sluice")
		b.AddSet(s)
		got, err := wire.DecodeSet(messages(t, b.Finish())[1].data)
		if err != nil || got.Table != "sluice" || !got.Is(s) {
			t.Fatalf("%v: got %+v of %+v", err, got, s)
		}
		other := *s
		other.Size++
		if got.Is(&other) {
			t.Error("is of another size too")
		}
	})
}

// Elements of one set share messages, whose lists stay below 64 KB.
func TestElementsShareMessages(t *testing.T) {
	r := proxy()
	s := &r.sets[0]
	e := nft.Element{Data: val().Uint32(1), Comment: strings.Repeat("c", 127)}
	const count = 5000
	b := wire.NewBatch("sluice")
	for i := range uint32(count) {
		e.Key = val().Uint32(i).Proto(6).Port(80)
		b.AddElement(s, &e)
	}
	total, lists := 0, 0
	batch := b.Finish()
	for _, m := range messages(t, batch) {
		if m.kind != wire.NewElement {
			continue
		}
		lists++
		if len(m.data) > 61_000 {
			t.Errorf("a message of %d bytes", len(m.data))
		}
		for _, got := range decodeElements(t, m.data) {
			if want := val().Uint32(uint32(total)).Proto(6).Port(80); got.Key != want {
				t.Fatalf("element %d is %v", total, got.Key)
			}
			total++
		}
	}
	if least := len(batch)/60_000 + 1; total != count || lists > least {
		t.Errorf("%d elements in %d messages", total, lists)
	}
}

func TestElementsOfTwoSets(t *testing.T) {
	r := proxy()
	b := wire.NewBatch("sluice")
	for i := range 2 {
		s := &r.sets[i]
		e := &r.elements[s.Name][0]
		b.AddElement(s, e)
		b.DeleteElement(s, e)
		b.AddElement(s, e)
		b.AddElement(s, e)
	}
	var got []string
	for _, m := range messages(t, b.Finish()) {
		got = append(got, fmt.Sprintf("%d %s", m.kind&0xff, b.Subject(m.seq)))
	}
	want := []string{
		"16 batch begin", "12 elements of services4", "14 elements of services4", "12 elements of services4",
		"12 elements of outside4", "14 elements of outside4", "12 elements of outside4", "17 batch end",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestRuleUserdata(t *testing.T) {
	rules := append(statements(), affine(families[0])...)
	seen := map[uint64]string{}
	for _, r := range rules {
		b := wire.NewBatch("sluice")
		b.AddRule("chain", &r)
		all := messages(t, b.Finish())
		got, err := wire.DecodeRule(all[len(all)-2].data)
		want := wire.Rule{
			Family: wire.FamilyInet, Table: "sluice", Chain: "chain", Hash: wire.Hash(&r),
			Comment: nft.CleanComment(r.Comment), Target: target(r),
		}
		if err != nil || got != want {
			t.Errorf("%v: got %+v, want %+v", err, got, want)
		}
		if other, ok := seen[got.Hash]; ok && other != r.String() {
			t.Errorf("%q and %q have one hash", other, r.String())
		}
		seen[got.Hash] = r.String()
	}
	if len(seen) < 20 {
		t.Errorf("only %d rules", len(seen))
	}
}

func target(r nft.Rule) string {
	for _, s := range r.Statements {
		if v, ok := s.(nft.Verdict); ok {
			return v.Chain
		}
	}
	return ""
}

func TestBatchHeaders(t *testing.T) {
	b := wire.NewBatch("sluice")
	if !b.Empty() {
		t.Error("a new batch is not empty")
	}
	b.FlushChain("random-3")
	if b.Empty() {
		t.Error("a batch with a message is empty")
	}
	all := messages(t, b.Finish())
	if len(all) != 3 {
		t.Errorf("got %v", all)
	}
	for i, m := range all {
		if m.seq != uint32(i) || m.flags != 1 {
			t.Errorf("message %d: number %d, flags %d", i, m.seq, m.flags)
		}
	}
	if got := b.Subject(1); got != "rules of chain random-3" {
		t.Error(got)
	}
	if got := b.Subject(7); got != "no message of the batch" {
		t.Error(got)
	}
}
