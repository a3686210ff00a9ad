package sets

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/model"
)

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func set(typ Type, f model.Family, entries ...Entry) *Set {
	s := &Set{Header: Header{Name: "S", Type: typ, Family: f, HashSize: 1024, MaxElem: 65536}, Entries: map[Entry]uint32{}}
	for i, e := range entries {
		s.Entries[e] = uint32(i)
	}
	return s
}

func TestFind(t *testing.T) {
	web := Entry{Addr: addr("10.0.0.1"), Protocol: 6, Port: 80}
	with := func(net string, not bool) Entry {
		e := web
		e.Net, e.NoMatch = prefix(net), not
		return e
	}
	packet := func(a string, p model.Protocol, port uint16, third string) Packet {
		pkt := Packet{Addr: addr(a), Protocol: p, Port: port}
		if third != "" {
			pkt.Third = addr(third)
		}
		return pkt
	}
	ranges := set(HashIPPortNet, model.IPv4, with("10.0.0.0/8", false), with("10.1.0.0/16", true), with("10.1.2.0/24", false))
	for _, tt := range []struct {
		name  string
		set   *Set
		pkt   Packet
		found bool
	}{
		{"address", set(HashIP, model.IPv4, Entry{Addr: addr("10.0.0.1")}), packet("10.0.0.1", 17, 5, ""), true},
		{"another address", set(HashIP, model.IPv4, Entry{Addr: addr("10.0.0.1")}), packet("10.0.0.2", 17, 5, ""), false},
		{"another family", set(HashIP, model.IPv6, Entry{Addr: addr("fd00::1")}), packet("10.0.0.1", 17, 5, ""), false},
		{"port", set(HashIPPort, model.IPv4, web), packet("10.0.0.1", 6, 80, ""), true},
		{"another protocol", set(HashIPPort, model.IPv4, web), packet("10.0.0.1", 17, 80, ""), false},
		{"another port", set(HashIPPort, model.IPv4, web), packet("10.0.0.1", 6, 81, ""), false},
		{"bitmap", set(BitmapPort, model.IPv4, Entry{Port: 80}), packet("10.0.0.1", 17, 80, ""), true},
		{"bitmaps know no SCTP", set(BitmapPort, model.IPv4, Entry{Port: 80}), packet("10.0.0.1", 132, 80, ""), false},
		{"third", set(HashIPPortIP, model.IPv4, with("10.0.0.9/32", false)), packet("10.0.0.1", 6, 80, "10.0.0.9"), true},
		{"another third", set(HashIPPortIP, model.IPv4, with("10.0.0.9/32", false)), packet("10.0.0.1", 6, 80, "10.0.0.8"), false},
		{"in a range", ranges, packet("10.0.0.1", 6, 80, "10.200.0.1"), true},
		{"excepted", ranges, packet("10.0.0.1", 6, 80, "10.1.9.1"), false},
		{"in a smaller range", ranges, packet("10.0.0.1", 6, 80, "10.1.2.1"), true},
		{"in none", ranges, packet("10.0.0.1", 6, 80, "11.0.0.1"), false},
	} {
		if _, found := tt.set.Find(tt.pkt); found != tt.found {
			t.Errorf("%s: found %v, want %v", tt.name, found, tt.found)
		}
	}
}

func TestMarkIsTold(t *testing.T) {
	s := set(BitmapPort, model.IPv4, Entry{Port: 1}, Entry{Port: 2})
	if mark, ok := s.Find(Packet{Addr: addr("10.0.0.1"), Protocol: 6, Port: 2}); !ok || mark != 1 {
		t.Errorf("mark %d, %v", mark, ok)
	}
}

func TestLines(t *testing.T) {
	s := set(HashIPPortNet, model.IPv6,
		Entry{Addr: addr("fd00::1"), Protocol: 132, Port: 80, Net: prefix("fd00::/64"), NoMatch: true},
		Entry{Addr: addr("fd00::1"), Protocol: 17, Port: 80, Net: prefix("fd00::9/128")})
	s.Marks = true
	want := []string{
		"create S hash:ip,port,net family inet6 hashsize 1024 maxelem 65536 skbinfo",
		"add S fd00::1,udp:80,fd00::9 skbmark 0x1",
		"add S fd00::1,sctp:80,fd00::/64 nomatch",
	}
	if diff := cmp.Diff(want, s.Lines()); diff != "" {
		t.Error(diff)
	}
	ports := set(BitmapPort, model.IPv4, Entry{Port: 8080})
	if got := strings.Join(ports.Lines(), "\n"); got != "create S bitmap:port range 0-65535\nadd S 8080" {
		t.Error(got)
	}
}
