package iptwalk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/iptables/rules"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/golden"
	"sluice/internal/testkit/oracle"
	"sluice/internal/trace"
)

var host = Host{Addrs: []netip.Addr{netip.MustParseAddr("192.168.7.5"), netip.MustParseAddr("fd00:7::5")}}

func packet(from, to string) plan.Packet {
	p := plan.Packet{From: netip.MustParseAddr(from), To: netip.MustParseAddrPort(to), Protocol: model.TCP}
	if host.local(p.From) {
		p.Via = plan.ViaLocal
	}
	return p
}

func ruleset(t testing.TB, text string) *rules.Ruleset {
	t.Helper()
	rs, err := rules.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func file(t testing.TB, name string) *rules.Ruleset {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return ruleset(t, string(b))
}

func TestDumps(t *testing.T) {
	for _, c := range []struct{ dump, from, to, want string }{
		{"five", "10.42.3.77", "10.43.7.7:8000", "forward 10.42.3.1:9000=0.2 10.42.3.2:9000=0.2 10.42.3.3:9000=0.2 10.42.3.4:9000=0.2 10.42.3.5:9000=0.2"},
		{"five", "10.42.3.4", "10.43.7.7:8000", "forward 10.42.3.1:9000=0.2 10.42.3.2:9000=0.2 10.42.3.3:9000=0.2 10.42.3.4:9000=0.2m 10.42.3.5:9000=0.2"},
		{"five", "192.168.7.5", "10.43.7.7:8000", "forward 10.42.3.1:9000=0.2m 10.42.3.2:9000=0.2m 10.42.3.3:9000=0.2m 10.42.3.4:9000=0.2m 10.42.3.5:9000=0.2m"},
		{"five", "10.42.3.77", "10.43.7.7:8001", "unhandled"},
		{"old", "203.0.113.9", "192.168.7.5:31306", "forward 172.30.1.2:3306=0.5m 172.30.2.3:3306=0.5m"},
		{"old", "203.0.113.9", "10.250.1.9:3306", "forward 172.30.1.2:3306=0.5 172.30.2.3:3306=0.5"},
		{"old", "203.0.113.9", "8.8.8.8:53", "drop"},
		{"old", "192.168.7.5", "10.250.1.10:80", "reject"},
		{"old", "203.0.113.9", "192.168.7.5:22", "unhandled"},
		{"old", "203.0.113.9", "127.0.0.1:31306", "drop"},
	} {
		t.Run(c.dump+" "+c.from+" "+c.to, func(t *testing.T) {
			r := Walk(file(t, c.dump+".rules"), packet(c.from, c.to), host)
			if got := oracle.Short(r); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestRules walks a packet from 10.1.1.1 to 10.9.9.9:80 through a few rules. A line without a table is of nat, one
// without a chain of PREROUTING.
func TestRules(t *testing.T) {
	const to = "-j DNAT --to-destination 1.1.1.1:1"
	for _, c := range []struct{ name, rules, want string }{
		{"no rules", "", "unhandled"},
		{"dnat", "-d 10.9.9.9 -p tcp --dport 80 " + to, "forward 1.1.1.1:1=1"},
		{"other protocol", "-p udp --dport 80 " + to, "unhandled"},
		{"negated", "! -d 10.9.9.8 " + to, "forward 1.1.1.1:1=1"},
		{"multiport", "-p tcp -m multiport --dports 22,70:90 " + to, "forward 1.1.1.1:1=1"},
		{"iprange", "-m iprange --src-range 10.1.1.0-10.1.1.9 " + to, "forward 1.1.1.1:1=1"},
		{"syn", "-p tcp --syn " + to, "forward 1.1.1.1:1=1"},
		{"established", "-m conntrack --ctstate RELATED,ESTABLISHED " + to, "unhandled"},
		{"new", "-m state --state NEW " + to, "forward 1.1.1.1:1=1"},
		{"addrtype", "-m addrtype ! --dst-type LOCAL " + to, "forward 1.1.1.1:1=1"},
		{"physdev", "-m physdev --physdev-is-bridged " + to, "unhandled"},
		{"nfacct", "-m nfacct --nfacct-name x " + to, "forward 1.1.1.1:1=1"},
		{
			"nth", "-m statistic --mode nth --every 3 --packet 0 " + to + "\n-m statistic --mode nth --every 2 --packet 0 -j DNAT --to-destination 2.2.2.2:2\n-j DNAT --to-destination 3.3.3.3:3",
			"forward 1.1.1.1:1=0.3333 2.2.2.2:2=0.3333 3.3.3.3:3=0.3333",
		},
		{"range", "-j DNAT --to-destination 1.1.1.1-1.1.1.4", "forward 1.1.1.1:80=0.25 1.1.1.2:80=0.25 1.1.1.3:80=0.25 1.1.1.4:80=0.25"},
		{"redirect", "-p tcp -j REDIRECT --to-ports 99", "forward 192.168.7.5:99=1"},
		{"recent", "-m recent --rcheck --name X -j DROP\n-m recent --set --name X " + to, "forward 1.1.1.1:1=1"},
		{"chance of a drop", "filter FORWARD -m statistic --mode random --probability 0.25 -j DROP\n" + to, "forward 1.1.1.1:1=0.75 or drop=0.25"},
		{"marks", "-j MARK --set-mark 0x1\n-m mark --mark 0x1 -j CONNMARK --save-mark\n-j MARK --set-mark 0\n-j CONNMARK --restore-mark\n-m mark --mark 1 " + to, "forward 1.1.1.1:1=1"},
		{"dnat state", to + "\nfilter FORWARD -m conntrack --ctstate DNAT -j ACCEPT\nfilter FORWARD -j DROP", "forward 1.1.1.1:1=1"},
		{"snat", to + "\nnat POSTROUTING -j SNAT --to-source 9.9.9.9", "forward 1.1.1.1:1=1m"},
		{"log", "-j LOG --log-prefix \"x \"\n" + to, "forward 1.1.1.1:1=1"},
		{"goto", "-j CH\nnat CH -g NEXT\nnat CH " + to + "\nnat NEXT -p udp -j ACCEPT\n-j DNAT --to-destination 2.2.2.2:2", "forward 2.2.2.2:2=1"},
		{"jump returns", "-j CH\nnat CH -j NEXT\nnat CH " + to + "\nnat NEXT -j RETURN\n-j DNAT --to-destination 2.2.2.2:2", "forward 1.1.1.1:1=1"},
		{"return ends a base chain", "-j RETURN\n" + to, "unhandled"},
		{"raw drop", "raw PREROUTING -j DROP", "drop"},
		{"notrack", "raw PREROUTING -j CT --notrack\n" + to, "unhandled"},
		{"unknown match", "-m set --match-set x src " + to + "\n-j DNAT --to-destination 2.2.2.2:2", "forward 1.1.1.1:1=0.5 2.2.2.2:2=0.5 ?"},
		{"unknown drop", "filter FORWARD -m set --match-set x src -j DROP\n" + to, "forward 1.1.1.1:1=1 ? or drop=0"},
		{"unknown accept", "filter FORWARD -m owner --uid-owner 3 -j ACCEPT\nfilter FORWARD -j DROP\n" + to, "drop ? or forward=0"},
		{"unknown, no matter", "filter FORWARD -m limit --limit 5/min -j LOG\n" + to, "forward 1.1.1.1:1=1"},
		{"unknown, but does not come to it", "-s 10.2.0.0/16 -m set --match-set x src -j DROP\n" + to, "forward 1.1.1.1:1=1"},
		{"out interface", to + "\nnat POSTROUTING -o eth+ -j MASQUERADE", "forward 1.1.1.1:1=0.5 1.1.1.1:1=0.5m ?"},
		{"unknown target", "-j NFQUEUE --queue-num 1\n" + to, "forward 1.1.1.1:1=1 ?"},
		{"rule that cannot be read", "-x\n" + to, "forward 1.1.1.1:1=1 ?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Walk(ruleset(t, save(c.rules)), packet("10.1.1.1", "10.9.9.9:80"), host)
			if got := oracle.Short(r); got != c.want {
				t.Errorf("got  %s\nwant %s\n%+v", got, c.want, r)
			}
		})
	}
}

// save turns lines of "[table [chain]] rule" into a saved ruleset.
func save(lines string) string {
	rs := &rules.Ruleset{}
	for line := range strings.SplitSeq(lines, "\n") {
		table, chain := "nat", "PREROUTING"
		if words := strings.SplitN(line, " ", 3); len(words) == 3 && line[0] >= 'a' {
			table, chain, line = words[0], words[1], words[2]
		}
		if line != "" {
			rs.AddTable(table).AddChain(chain).Add(rules.Rule(line))
		}
	}
	return rs.String()
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ rules, want string }{
		"loop":      {"-j A\nnat A -j B\nnat B -j A", "chain A leads back to itself: PREROUTING → A → B → A"},
		"self":      {"-g A\nnat A -g A", "leads back to itself"},
		"undefined": {"-j KUBE-SVC-GONE", "jumps to KUBE-SVC-GONE, which is neither"},
		"explosion": {"-j C0\n" + explosion(40), "too many ways"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Walk(ruleset(t, save(c.rules)), packet("10.1.1.1", "10.9.9.9:80"), host)
			if !strings.Contains(r.Error, c.want) || !r.Uncertain {
				t.Errorf("error %q, uncertain %v; want %q", r.Error, r.Uncertain, c.want)
			}
		})
	}
}

// explosion is chains of which each goes through the next one twice.
func explosion(n int) string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("nat C%d -j C%d\nnat C%d -j C%d", i, i+1, i, i+1))
	}
	return strings.Join(lines, "\n") + fmt.Sprintf("\nnat C%d -j RETURN", n)
}

func TestIPv6(t *testing.T) {
	text := save(`-d fd00:96::a/128 -p tcp -m tcp --dport 80 -j SVC
nat SVC ! -s fd00:244::/56 -j MARK --set-xmark 0x4000/0x4000
nat SVC -j DNAT --to-destination [fd00:244::9]:8080
nat POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE --random-fully`)
	r := Walk(ruleset(t, text), packet("2001:db8::1", "[fd00:96::a]:80"), host)
	if got, want := oracle.Short(r), "forward [fd00:244::9]:8080=1m"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLocal: what a process sends to the node itself comes in again by the loopback.
func TestLocal(t *testing.T) {
	text := save("nat OUTPUT -p udp -j ACCEPT\nfilter INPUT -i lo -p tcp --dport 30080 -j REJECT")
	r := Walk(ruleset(t, text), packet("192.168.7.5", "192.168.7.5:30080"), host)
	if got, want := oracle.Short(r), "reject"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestManyEndpoints(t *testing.T) {
	const n = 5000
	lines := []string{"-d 10.9.9.9/32 -j SVC"}
	for i := range n {
		stat := fmt.Sprintf("-m statistic --mode random --probability %s ", rules.Probability(uint32(math.Round(rules.One/float64(n-i)))))
		if i == n-1 {
			stat = ""
		}
		lines = append(lines, fmt.Sprintf("nat SVC %s-j SEP%d", stat, i),
			fmt.Sprintf("nat SEP%d -p tcp -j DNAT --to-destination 10.50.%d.%d:80", i, i/250, i%250))
	}
	r := Walk(ruleset(t, save(strings.Join(lines, "\n"))), packet("10.1.1.1", "10.9.9.9:80"), host)
	if len(r.Endpoints) != n || len(r.Steps) > 50 {
		t.Fatalf("%d endpoints, %d steps", len(r.Endpoints), len(r.Steps))
	}
	for _, e := range r.Endpoints {
		if math.Abs(e.Probability*n-1) > 0.001 {
			t.Fatalf("%s has %g", e.Address, e.Probability)
		}
	}
}

func TestGolden(t *testing.T) {
	r := Walk(file(t, "five.rules"), packet("10.42.3.4", "10.43.7.7:8000"), host)
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "five.txt", text.String())
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "five.json", string(b)+"\n")
}

func FuzzWalk(f *testing.F) {
	for _, seed := range []string{
		"-d 10.9.9.9 -p tcp --dport 80 -m statistic --mode random --probability 0.3 -j A\nnat A -j DNAT --to-destination 1.1.1.1-1.1.1.3:5\nnat POSTROUTING -j MASQUERADE",
		"-m set --match-set x src -g A\nnat A -m recent --set -j RETURN\n-j REJECT",
		"filter FORWARD -m conntrack --ctstate NEW -j A\nfilter A -m mark ! --mark 1/2 -j DROP\nfilter A -j A",
		explosion(6),
	} {
		f.Add(save(seed), true)
	}
	f.Fuzz(func(t *testing.T, text string, forward bool) {
		rs, err := rules.Parse(strings.NewReader(text))
		if err != nil || strings.Count(text, "\n") > 60 {
			return
		}
		p := packet("10.1.1.1", "10.9.9.9:80")
		if !forward {
			p.Via = plan.ViaLocal
		}
		checkShares(t, Walk(rs, p, host))
	})
}

// checkShares wants nothing lost: the shares of all ends come to 1; within one verdict, where nobody knows more.
func checkShares(t *testing.T, r trace.Result) {
	t.Helper()
	var sum float64
	for _, e := range r.Endpoints {
		sum += e.Probability
	}
	if r.Verdict == trace.Forward && r.Uncertain && math.Abs(sum-1) > 1e-6 {
		t.Fatalf("endpoints come to %g: %s", sum, oracle.Short(r))
	}
	if r.Uncertain || r.Verdict != trace.Forward {
		return
	}
	for _, a := range r.Alternatives {
		sum += a.Probability
	}
	if math.Abs(sum-1) > 1e-6 {
		t.Fatalf("all comes to %g: %s", sum, oracle.Short(r))
	}
}
