package nftables

import (
	"bytes"
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"sluice/internal/lab"
	"sluice/internal/model"
)

// leftByProxy is what kube-proxy leaves in the tables of iptables: Service number 1 leads to the pod at TO.
const leftByProxy = `*filter
:KUBE-SERVICES - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-PROXY-CANARY - [0:0]
-A INPUT -j KUBE-FIREWALL
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -j KUBE-FIREWALL
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A KUBE-SERVICES -d 10.96.0.2/32 -p tcp -m comment --comment "default/service-2:http has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable
COMMIT
*nat
:KUBE-SERVICES - [0:0]
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SEP-BBBBBBBBBBBBBBBB - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-MARK-DROP - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/service-1:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "default/service-1:http" -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -m tcp -j DNAT --to-destination TO:8080
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000
COMMIT
*mangle
:KUBE-PROXY-CANARY - [0:0]
COMMIT
`

// succeed has a command succeed, and is what it prints.
func succeed(t testing.TB, cmd interface{ CombinedOutput() ([]byte, error) }) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// restore gives text to iptables-nft-restore, and goes with what it made.
func restore(t *testing.T, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "iptables-nft-restore", "--noflush")
	cmd.Stdin = strings.NewReader(text)
	succeed(t, cmd)
	t.Cleanup(func() { succeed(t, exec.Command("nft", "flush", "ruleset", "ip")) })
}

func TestCleanupIPTables(t *testing.T) {
	b := inKernel(t)
	restore(t, strings.ReplaceAll(leftByProxy, "TO", "10.244.1.9")+"*filter\n-A INPUT -s 192.0.2.1/32 -j DROP\nCOMMIT\n")
	removed, err := b.CleanupIPTables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(removed, ", "); got != "table ip filter: 4 chains of a Service proxy, table ip nat: 4 chains of a Service proxy, table ip mangle: 1 chains of a Service proxy" {
		t.Errorf("removed %s", got)
	}
	var lines []string
	for l := range strings.Lines(succeed(t, exec.Command("iptables-nft-save"))) {
		if strings.Contains(l, "KUBE-") || strings.HasPrefix(l, "-A") {
			lines = append(lines, l)
		}
	}
	want := "-A INPUT -s 192.0.2.1/32 -j DROP\n:KUBE-MARK-DROP - [0:0]\n-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000\n"
	if got := strings.Join(lines, ""); got != want {
		t.Errorf("left:\n%swant:\n%s", got, want)
	}
	if removed, err := b.CleanupIPTables(t.Context()); err != nil || len(removed) != 0 {
		t.Errorf("once more: removed %v, error %v", removed, err)
	}
}

// What is kubelet's stays, and so does what others' rules and maps lead to.
func TestCleanupIPTablesSparesOthers(t *testing.T) {
	b, f := withFaults(t)
	f.limit = 2 << 10 // so that it takes several transactions
	restore(t, strings.ReplaceAll(leftByProxy, "TO", "10.244.1.9")+`*mangle
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
*nat
:MINE - [0:0]
-A MINE -j KUBE-SVC-AAAAAAAAAAAAAAAA
COMMIT
`)
	nftFile(t, "add map ip nat mine { type ipv4_addr : verdict; }; add element ip nat mine { 192.0.2.1 : jump KUBE-MARK-MASQ }")
	_, err := b.CleanupIPTables(t.Context())
	if err == nil || !strings.Contains(err.Error(), "KUBE-MARK-MASQ, KUBE-SVC-AAAAAAAAAAAAAAAA") {
		t.Errorf("error is %v, want one that names the chains that are held", err)
	}
	nftFile(t, "delete map ip nat mine")
	saved := succeed(t, exec.Command("iptables-nft-save"))
	for _, want := range []string{
		":KUBE-KUBELET-CANARY", ":KUBE-FIREWALL", "-A INPUT -j KUBE-FIREWALL", "-A KUBE-FIREWALL ! -s 127.0.0.0/8", ":KUBE-SVC-AAAAAAAAAAAAAAAA", ":KUBE-MARK-MASQ", "-A MINE -j KUBE-SVC-AAAAAAAAAAAAAAAA",
	} {
		if !strings.Contains(saved, want) {
			t.Errorf("%s is gone:\n%s", want, saved)
		}
	}
	for _, gone := range []string{"-A KUBE-SVC-", "-A KUBE-MARK-MASQ", "KUBE-SERVICES", "KUBE-SEP"} {
		if strings.Contains(saved, gone) {
			t.Errorf("%s is left:\n%s", gone, saved)
		}
	}
}

// The guard of loopback addresses stays as long as they are routed, and nothing else does.
func TestCleanupIPTablesSparesGuardThatIsNeeded(t *testing.T) {
	b := inKernel(t)
	restore(t, strings.ReplaceAll(leftByProxy, "TO", "10.244.1.9"))
	fail := errReadOnly
	b.deps.RouteLocalnet = func(bool) error { return fail }
	for range 2 { // the second finds the guard alone
		if _, err := b.CleanupIPTables(t.Context()); !errors.Is(err, errReadOnly) {
			t.Errorf("error is %v", err)
		}
		saved := succeed(t, exec.Command("iptables-nft-save"))
		if strings.Contains(saved, "KUBE-SERVICES") || !strings.Contains(saved, "-A KUBE-FIREWALL") || strings.Count(saved, "-j KUBE-FIREWALL") != 2 {
			t.Errorf("left:\n%s", saved)
		}
	}
	fail = nil
	if _, err := b.CleanupIPTables(t.Context()); err != nil {
		t.Error(err)
	}
	if saved := succeed(t, exec.Command("iptables-nft-save")); strings.Contains(saved, "KUBE-FIREWALL") {
		t.Errorf("left:\n%s", saved)
	}
}

// Open connections outlive a change of the mode, in both directions, and new ones go where the new rules say.
func TestSwitchKeepsConnections(t *testing.T) {
	l := upLab(t)
	w := newRig(t, service(1, 5), service(2, 5))
	proxy := func() {
		cmd := l.Node().Command(t.Context(), "iptables-nft-restore", "--noflush")
		cmd.Stdin = bytes.NewReader([]byte(strings.ReplaceAll(leftByProxy, "TO", "10.244.1.9")))
		succeed(t, cmd)
	}
	b := New(DefaultOptions(), Deps{})
	proxy()
	old := connect(t, l, 1, "10.244.1.9:8080")
	applyAt(t, l.Node(), b, w)
	echo(t, old)
	err := l.Node().Do(func() error {
		_, err := b.CleanupIPTables(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	echo(t, old)
	ours := connect(t, l, 1, "10.244.1.5:8080")
	connect(t, l, 2, "10.244.1.5:8080")
	proxy()
	if err := l.Node().Do(func() error { return b.Cleanup(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	echo(t, old)
	echo(t, ours)
	connect(t, l, 1, "10.244.1.9:8080")
}

// connect opens a connection of a pod to Service number i, which must arrive where it is wanted.
func connect(t *testing.T, l *lab.Lab, i int, want string) *lab.Conn {
	t.Helper()
	c, o, err := l.Host("pods-a").Connect(lab.Dial{
		From: netip.MustParseAddr("10.244.1.50"), To: netip.AddrPortFrom(clusterIP(i), 80), Protocol: model.TCP,
	})
	if err != nil || c == nil {
		t.Fatalf("connect to Service %d: %v, error %v", i, o, err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if o.Endpoint.String() != want {
		t.Errorf("connect to Service %d: %v, want %s", i, o, want)
	}
	return c
}

func echo(t *testing.T, c *lab.Conn) {
	t.Helper()
	if err := c.Echo("still there?"); err != nil {
		t.Error(err)
	}
}
