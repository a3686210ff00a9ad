package iptwalk

import (
	"net/netip"
	"strings"
	"testing"

	"sluice/internal/iptables/sets"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/oracle"
)

// someSets are one with the packets' destination, its marks being 7, and one with their source.
func someSets(name string) *sets.Set {
	web := sets.Entry{Addr: netip.MustParseAddr("10.9.9.9"), Protocol: 6, Port: 80}
	from := web
	from.Net = netip.MustParsePrefix("10.1.1.1/32")
	return map[string]*sets.Set{
		"to":    {Header: sets.Header{Type: sets.HashIPPort}, Entries: map[sets.Entry]uint32{web: 7}},
		"from":  {Header: sets.Header{Type: sets.HashIPPortIP}, Entries: map[sets.Entry]uint32{from: 0}},
		"hosts": {Header: sets.Header{Type: sets.HashIP}, Entries: map[sets.Entry]uint32{{Addr: netip.MustParseAddr("10.1.1.1")}: 0}},
		"ports": {Header: sets.Header{Type: sets.BitmapPort}, Entries: map[sets.Entry]uint32{{Port: 80}: 0}},
	}[name]
}

// TestSets walks a packet from 10.1.1.1 to 10.9.9.9:80 through rules of filter FORWARD.
func TestSets(t *testing.T) {
	for _, c := range []struct{ name, rules, want string }{
		{"in it", "-m set --match-set to dst,dst -j DROP", "drop"},
		{"not in it", "-m set ! --match-set to dst,dst -j DROP", "unhandled"},
		{"by source", "-m set --match-set from dst,dst,src -j DROP", "drop"},
		{"by another source", "-m set --match-set from dst,dst,dst -j DROP", "unhandled"},
		{"host", "-m set --match-set hosts src -j DROP", "drop"},
		{"another host", "-m set --match-set hosts dst -j DROP", "unhandled"},
		{"port", "-p tcp -m set --match-set ports dst -j DROP", "drop"},
		{"the client's port", "-p tcp -m set --match-set ports src -j DROP", "unhandled ? or drop=0"},
		{"unknown set", "-m set --match-set nothing dst -j DROP", "unhandled ? or drop=0"},
		{"too few parts", "-m set --match-set to dst -j DROP", "unhandled ? or drop=0"},
		{"unknown option", "-m set --match-set to dst,dst --packets-gt 5 -j DROP", "unhandled ? or drop=0"},
		{"mark", "-j SET --map-set to dst,dst --map-mark\n-m mark --mark 0x7 -j DROP", "drop"},
		{"no mark of others", "-j SET --map-set from dst,dst,dst --map-mark\n-m mark ! --mark 0x0 -j DROP", "unhandled"},
		{"no mark asked for", "-j SET --map-set to dst,dst --map-prio\n-m mark --mark 0x7 -j DROP", "unhandled"},
		{"unknown map", "-j SET --map-set nothing dst,dst --map-mark\n-m mark --mark 0x7 -j DROP", "unhandled ?"},
		{"add to a set", "-j SET --add-set to src\n-m set --match-set to dst,dst -j DROP", "drop"},
	} {
		text := "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD " + strings.ReplaceAll(c.rules, "\n", "\n-A FORWARD ") + "\nCOMMIT\n"
		with := host
		with.Sets = someSets
		if got := oracle.Short(Walk(ruleset(t, text), packet("10.1.1.1", "10.9.9.9:80"), with)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	plain := Walk(ruleset(t, "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m set --match-set to dst,dst -j DROP\nCOMMIT\n"), packet("10.1.1.1", "10.9.9.9:80"), host)
	if !plain.Uncertain {
		t.Error("sets that nobody knows are certain")
	}
}

// TestBalance: virtual servers pick behind filter INPUT for what comes in, and ahead of filter OUTPUT for what the node
// sends; what they send passes OUTPUT and POSTROUTING.
func TestBalance(t *testing.T) {
	const (
		virtual = "192.168.7.5:80"
		rules   = `*mangle
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -s 10.1.1.2/32 -j MARK --set-xmark 0x5/0xffffffff
-A OUTPUT -d 10.2.2.3/32 -j DROP
COMMIT
*filter
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
-A INPUT -s 10.1.1.3/32 -j DROP
-A OUTPUT -d 192.168.7.5/32 -j REJECT
-A FORWARD -j DROP
COMMIT
*nat
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -d 10.2.2.2/32 -j MASQUERADE
COMMIT
`
	)
	balance := func(to netip.AddrPort, p model.Protocol, mark uint32) ([]plan.Endpoint, bool) {
		at := func(addr string, weight uint16) plan.Endpoint {
			return plan.Endpoint{AddrPort: netip.MustParseAddrPort(addr), Weight: weight}
		}
		switch {
		case p != model.TCP:
			return nil, false
		case mark == 5:
			return []plan.Endpoint{at("192.168.7.5:8080", 1)}, true
		case to.Port() == 81:
			return nil, true
		case to.Port() == 82:
			return []plan.Endpoint{at("10.2.2.3:8080", 1)}, true
		}
		return []plan.Endpoint{at("10.2.2.1:8080", 3), at("10.2.2.2:8080", 1)}, to.Port() == 80
	}
	for _, c := range []struct{ from, to, want string }{
		{"10.1.1.1", virtual, "forward 10.2.2.1:8080=0.75 10.2.2.2:8080=0.25m"},
		{"10.1.1.2", virtual, "forward 192.168.7.5:8080=1"},
		{"10.1.1.3", virtual, "drop"},
		{"10.1.1.1", "192.168.7.5:81", "reject"},
		{"10.1.1.1", "192.168.7.5:82", "drop"},
		{"10.1.1.1", "192.168.7.5:83", "unhandled"},
		{"10.1.1.1", "10.3.3.3:80", "drop"}, // not this node's, so ipvs does not see it
		{"192.168.7.5", virtual, "forward 10.2.2.1:8080=0.75 10.2.2.2:8080=0.25m"},
		{"192.168.7.5", "192.168.7.5:83", "reject"},
	} {
		with := host
		with.Balance = balance
		r := Walk(ruleset(t, rules), packet(c.from, c.to), with)
		if got := oracle.Short(r); got != c.want {
			t.Errorf("%s → %s: got %s, want %s\n%s", c.from, c.to, got, c.want, oracle.Steps(r))
		}
	}
}
