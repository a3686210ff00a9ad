package nft_test

import (
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sluice/internal/nft"
)

func TestReader(t *testing.T) {
	fields := []nft.Field{{Type: nft.IPv4Addr}, {Type: nft.InetProto}, {Type: nft.IPv6Addr}, {Type: nft.InetService}, {Type: nft.ClassID}}
	rapid.Check(t, func(t *rapid.T) {
		a4 := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "a4")))
		a16 := netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "a16")))
		proto, port, n := rapid.Uint8().Draw(t, "proto"), rapid.Uint16().Draw(t, "port"), rapid.Uint32().Draw(t, "n")
		value := v().Addr(a4).Proto(proto).Addr(a16).Port(port).Uint32(n)
		r := nft.NewReader(value)
		if a, p, b, q, m := r.Addr4(), r.Proto(), r.Addr16(), r.Port(), r.Uint32(); a != a4 || p != proto || b != a16 || q != port || m != n {
			t.Errorf("got %v %v %v %v %v", a, p, b, q, m)
		}
		parts := []nft.Value{v().Addr(a4), v().Proto(proto), v().Addr(a16), v().Port(port), v().Uint32(n)}
		for i, want := range parts {
			if got := value.At(fields, i); got != want {
				t.Errorf("field %d is %v, want %v", i, got, want)
			}
		}
	})
}

// Beyond the end there are zeros, for values come from the kernel, too.
func TestReaderBeyondEnd(t *testing.T) {
	r := nft.NewReader(v().Port(7))
	if r.Addr16() != netip.IPv6Unspecified() || r.Port() != 0 || r.Uint32() != 0 {
		t.Error("something is behind the end")
	}
	fields := []nft.Field{{Type: nft.InetService}, {Type: nft.IPv6Addr}}
	if got := v().Port(7).At(fields, 1); !got.IsZero() {
		t.Errorf("got %v", got)
	}
}

// A range is printed so that its ends can be read from the text.
func TestRangeText(t *testing.T) {
	s := nft.Set{Key: []nft.Field{{Type: nft.IPv4Addr}}, Interval: true}
	rapid.Check(t, func(t *rapid.T) {
		a := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "a")))
		p := netip.PrefixFrom(a, rapid.IntRange(0, 32).Draw(t, "bits")).Masked()
		first, last := p.Addr(), p.Addr()
		for p.Contains(last.Next()) && rapid.Bool().Draw(t, "longer") {
			last = last.Next()
		}
		text := s.ElementString(&nft.Element{Key: v().Addr(first), End: v().Addr(last)})
		if gotFirst, gotLast := ends(t, text); gotFirst != first || gotLast != last {
			t.Errorf("%v to %v is %q", first, last, text)
		}
	})
}

func ends(t *rapid.T, text string) (first, last netip.Addr) {
	if from, to, ok := strings.Cut(text, "-"); ok {
		return netip.MustParseAddr(from), netip.MustParseAddr(to)
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		a := netip.MustParseAddr(text)
		return a, a
	}
	first, last = p.Masked().Addr(), p.Masked().Addr()
	for p.Contains(last.Next()) {
		last = last.Next()
	}
	return first, last
}

// Comments fit and do not end before their end; those that are good stay.
func TestCleanComment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringN(100, 200, 300), rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		})).Draw(t, "comment")
		got := nft.CleanComment(s)
		if len(got) > 127 || !utf8.ValidString(got) || strings.ContainsAny(got, "\"\n\x00\x7f") {
			t.Errorf("got %q", got)
		}
		if again := nft.CleanComment(got); again != got {
			t.Errorf("then %q", again)
		}
	})
	if s := "default/web:http"; nft.CleanComment(s) != s {
		t.Error("a good comment changes")
	}
	if s := strings.Repeat("é", 64); nft.CleanComment(s) != s[:126] {
		t.Errorf("got %q", nft.CleanComment(s))
	}
}

func TestLastOf(t *testing.T) {
	for prefix, want := range map[string]string{
		"10.1.2.3/32": "10.1.2.3", "10.1.2.0/23": "10.1.3.255", "10.0.0.0/8": "10.255.255.255", "0.0.0.0/0": "255.255.255.255",
		"fd00::/127": "fd00::1", "2001:db8::/33": "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff", "::1/128": "::1",
	} {
		if got := nft.LastOf(netip.MustParsePrefix(prefix)); got != netip.MustParseAddr(want) {
			t.Errorf("%s: %s, want %s", prefix, got, want)
		}
	}
}
