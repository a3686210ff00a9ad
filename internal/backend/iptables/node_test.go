package iptables

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/backend"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/netns"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/sample"
)

// node is a namespace with a Backend that writes the tables of one variant in it.
type node struct {
	testing.TB
	ns      *netns.NS
	deps    Deps
	backend *Backend
	variant iptexec.Variant
}

// eachVariant runs a test on a node of each variant of the programs.
func eachVariant(t *testing.T, test func(n *node)) {
	t.Helper()
	for _, v := range []iptexec.Variant{iptexec.NFT, iptexec.Legacy} {
		t.Run(string(v), func(t *testing.T) { test(newNode(t, v)) })
	}
}

func newNode(t testing.TB, v iptexec.Variant) *node {
	t.Helper()
	nstest.Require(t)
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	n := &node{TB: t, ns: ns, variant: v}
	n.do(func(ctx context.Context) (err error) {
		n.deps, _, err = System(ctx, v)
		return err
	})
	n.restart()
	return n
}

// restart is a new process that knows nothing.
func (n *node) restart() { n.backend = New(DefaultOptions(), n.deps) }

func (n *node) do(f func(context.Context) error) {
	n.Helper()
	if err := n.ns.Do(func() error { return f(n.Context()) }); err != nil {
		n.Fatal(err)
	}
}

func (n *node) apply(r *Ruleset, recheck bool) backend.Result {
	n.Helper()
	return n.ask(r, backend.Request{Recheck: recheck})
}

func (n *node) ask(r *Ruleset, req backend.Request) (result backend.Result) {
	n.Helper()
	n.do(func(ctx context.Context) (err error) {
		result, err = n.backend.Apply(ctx, r, req)
		return err
	})
	return result
}

// give hands text to iptables-restore --noflush, as somebody else.
func (n *node) give(f model.Family, text string) {
	n.Helper()
	n.do(func(ctx context.Context) error { return n.deps.Tables[f].Restore(ctx, []byte(text)) })
}

func (n *node) contents(f model.Family) (c contents) {
	n.Helper()
	n.do(func(ctx context.Context) (err error) {
		c, err = read(ctx, n.deps.Tables[f], contents{})
		return err
	})
	return c
}

// dualStack are the rules of two Services, one in each family, that have everything.
func dualStack() *Ruleset {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	external(s)
	s.ClusterIPs = sample.Addrs("10.96.0.10", "fd00:96::a")
	s.ExternalPolicy, s.HealthCheckNodePort = model.PolicyLocal, 32000
	six := *sl
	six.Name.Name, six.Family = "web-6", model.IPv6
	six.Endpoints = []model.Endpoint{endpointAt(sample.Addrs("fd00:244:2::5")[0])}
	return Compile(planOf(s, sl, &six), DefaultOptions())
}

func TestSecondApplyWritesNothing(t *testing.T) {
	eachVariant(t, func(n *node) {
		if r := n.apply(dualStack(), false); r.Written == 0 {
			n.Fatal("the first writes nothing")
		}
		for _, recheck := range []bool{false, true} {
			if r := n.apply(dualStack(), recheck); r.Written != 0 || r.Restored != nil {
				n.Errorf("recheck %v: %+v", recheck, r)
			}
		}
		n.restart()
		if r := n.apply(dualStack(), false); r.Written != 0 {
			n.Errorf("another process: %+v", r)
		}
	})
}

// TestOwnWritesAreNotReadBack: after what it wrote itself, in either family, a Backend does not read tables again.
func TestOwnWritesAreNotReadBack(t *testing.T) {
	eachVariant(t, func(n *node) {
		var counts [2]countSaves
		for f := range counts {
			counts[f].Tables = n.deps.Tables[f]
			n.deps.Tables[f] = &counts[f]
		}
		n.restart()
		n.apply(dualStack(), false)
		n.apply(Compile(planOf(sample.Service(model.IPv4, []string{"10.96.0.11", "10.244.1.6"})), DefaultOptions()), false)
		n.apply(dualStack(), false)
		n.apply(dualStack(), false)
		_, tells, _ := n.deps.Tables[0].Generation()
		for f, c := range counts {
			if tells && c.saves != 1 {
				n.Errorf("family %d: tables were read %d times, want once", f, c.saves)
			}
		}
		n.apply(dualStack(), true)
		n.apply(dualStack(), true)
		for f, c := range counts {
			if tells && c.saves != 2 {
				n.Errorf("family %d: tables were read %d times, want once more after own writes", f, c.saves)
			}
		}
		n.give(model.IPv6, "*nat\n-F KUBE-MARK-MASQ\nCOMMIT\n")
		if r := n.apply(dualStack(), false); tells && len(r.Restored) != 1 {
			n.Errorf("what somebody else did goes unnoticed: %+v", r)
		}
	})
}

type countSaves struct {
	Tables
	saves int
}

func (c *countSaves) Save(ctx context.Context) ([]byte, error) {
	c.saves++
	return c.Tables.Save(ctx)
}

func TestRestoresByHand(t *testing.T) {
	eachVariant(t, func(n *node) {
		n.apply(dualStack(), false)
		n.give(model.IPv4, "*nat\n-D PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n-F KUBE-MARK-MASQ\nCOMMIT\n")
		n.give(model.IPv6, "*filter\n-F FORWARD\n:KUBE-FORWARD - [0:0]\n-X KUBE-FORWARD\nCOMMIT\n")
		want := []string{
			"IPv4 nat KUBE-MARK-MASQ", "IPv4 nat PREROUTING → KUBE-SERVICES",
			"IPv6 filter KUBE-FORWARD", "IPv6 filter FORWARD → KUBE-PROXY-FIREWALL", "IPv6 filter FORWARD → KUBE-FORWARD",
			"IPv6 filter FORWARD → KUBE-SERVICES", "IPv6 filter FORWARD → KUBE-EXTERNAL-SERVICES",
		}
		if diff := cmp.Diff(want, n.apply(dualStack(), true).Restored); diff != "" {
			n.Errorf("restored (-want +got):\n%s", diff)
		}
		if r := n.apply(dualStack(), true); r.Written != 0 {
			n.Errorf("still %+v", r)
		}
	})
}

// TestManyServices: a text that is long from the first write on, and a small change after it.
func TestManyServices(t *testing.T) {
	eachVariant(t, func(n *node) {
		if n.variant == iptexec.NFT {
			nstest.RequireRoot(n, "the kernel limits an ordinary user's transactions to some hundred rules (net.core.wmem_default)")
		}
		p, deltas := bigCluster(300)
		r := Compile(p.Plan(), DefaultOptions())
		n.apply(r, false)
		r.Update(p.Plan(), p.Update(deltas[0]))
		if result := n.apply(r, false); result.Written != 3 { // the Service's chain, a new endpoint's, and an old one's
			n.Errorf("one endpoint: %+v, want 3 chains written", result)
		}
		n.restart()
		if result := n.apply(r, false); result.Written != 0 {
			n.Errorf("another process: %+v", result)
		}
	})
}

// foreignRules are those of others, which stay where they are.
const foreignRules = `*filter
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
-A INPUT -j KUBE-FIREWALL
-A INPUT -p icmp -j ACCEPT
-A FORWARD -j DOCKER
-A DOCKER -s 192.0.2.0/24 -j DROP
-A KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x8000/0x8000 -j DROP
COMMIT
*nat
-A PREROUTING -p tcp -m tcp --dport 8081 -j REDIRECT --to-ports 8080
-A POSTROUTING -s 172.17.0.0/16 -j MASQUERADE
COMMIT
`

func TestForeignRulesSurvive(t *testing.T) {
	eachVariant(t, func(n *node) {
		n.give(model.IPv4, foreignRules)
		before := n.foreign()
		if !slices.Contains(before, "FORWARD drops: true") {
			n.Fatalf("policy of FORWARD: %q", before)
		}
		n.apply(dualStack(), false)
		n.give(model.IPv4, "*filter\n-I INPUT 1 -s 9.9.9.9/32 -j ACCEPT\n-A FORWARD -s 9.9.9.9/32 -j ACCEPT\nCOMMIT\n")
		n.apply(Compile(planOf(sample.Service(model.IPv4, []string{"10.96.0.11"})), DefaultOptions()), true)
		n.give(model.IPv4, "*filter\n-D INPUT -s 9.9.9.9/32 -j ACCEPT\n-D FORWARD -s 9.9.9.9/32 -j ACCEPT\nCOMMIT\n")
		if diff := cmp.Diff(before, n.foreign()); diff != "" {
			n.Errorf("after Apply:\n%s", diff)
		}
		for range 2 { // the second finds nothing
			n.do(n.backend.Cleanup)
		}
		if diff := cmp.Diff(before, n.foreign()); diff != "" {
			n.Errorf("after Cleanup:\n%s", diff)
		}
		if left := ownCount(n.contents(model.IPv4)) + ownCount(n.contents(model.IPv6)); left != 0 {
			n.Errorf("%d chains are left", left)
		}
	})
}

// foreign are the rules that are not ours, and the policy of FORWARD; of KUBE-FIREWALL, those of kubelet.
func (n *node) foreign() []string {
	all := foreignLines(n.contents(model.IPv4))
	n.do(func(ctx context.Context) error {
		text, err := n.deps.Tables[model.IPv4].Save(ctx)
		all = append(all, "FORWARD drops: "+strconv.FormatBool(bytes.Contains(text, []byte(":FORWARD DROP"))))
		return err
	})
	for _, l := range lines(n.contents(model.IPv4)[Filter][chainFirewall]) {
		if !strings.Contains(l, "localnet") {
			all = append(all, l)
		}
	}
	return all
}

// TestAdoptsKubeProxy: rules that kube-proxy wrote for the same Services are taken over. Service chains are not
// touched, so that no connection finds them empty.
func TestAdoptsKubeProxy(t *testing.T) {
	dump, err := os.ReadFile(filepath.Join("testdata", "kube-proxy.rules"))
	if err != nil {
		t.Fatal(err)
	}
	eachVariant(t, func(n *node) {
		n.give(model.IPv4, string(dump))
		s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
		s.Type, s.Ports[0].NodePort = model.NodePort, 30080
		want := Compile(planOf(s, sl), DefaultOptions())
		d := diff(want.families[model.IPv4].desired, n.contents(model.IPv4))
		var written []string
		for _, table := range tables {
			for _, c := range d[table].write {
				written = append(written, c.name)
			}
			written = slices.Concat(written, d[table].remove)
		}
		// Node ports get a guard for loopback addresses, and a rule that counts who uses those; a chain of a Service that is
		// gone goes.
		if diff := cmp.Diff([]string{chainNodePorts, chainMasquerade, "KUBE-SVC-GONEGONEGONEGONE"}, written); diff != "" {
			n.Errorf("chains written or removed:\n%s\n%s", diff, d.text())
		}
		n.apply(want, false)
		if d := diff(want.families[model.IPv4].desired, n.contents(model.IPv4)); d.size() != 0 {
			n.Errorf("still to do:\n%s", d.text())
		}
	})
}

// TestTellsOtherVariant looks at the chains of an earlier proxy in the other variant, and cleans them up.
func TestTellsOtherVariant(t *testing.T) {
	eachVariant(t, func(n *node) {
		n.do(func(ctx context.Context) error {
			return n.deps.Others[0].Restore(ctx, []byte("*nat\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n"))
		})
		look := func() (found []string) {
			n.do(func(ctx context.Context) (err error) {
				found, err = n.backend.OtherVariant(ctx)
				return err
			})
			return found
		}
		if found := look(); len(found) != 1 {
			n.Errorf("found %q, want one line", found)
		}
		n.do(n.backend.Cleanup)
		if found := look(); found != nil {
			n.Errorf("found %q after Cleanup", found)
		}
	})
}

// TestRefusedLine: whether the program or the kernel refuses a line, the Service port is named and left out, all else is
// written, and so is it once it can be. The legacy kernel says only that it refuses a table.
func TestRefusedLine(t *testing.T) {
	eachVariant(t, func(n *node) {
		n.refused("--dport 80", "--dport eighty")
		if n.variant == iptexec.NFT {
			n.do(n.backend.Cleanup)
			n.restart()
			n.refused("-j KUBE-SVC-", "-j REJECT -m comment --comment KUBE-SVC-")
		}
	})
}

// refused has something in the line of a Service port be what is refused.
func (n *node) refused(old, bad string) {
	n.Helper()
	r := dualStack()
	f := r.families[model.IPv4]
	id, nat := f.fragments[0].id, f.chains[Nat]
	line, good := f.fragments[0].lines[natServices], nat[chainServices]
	f.fragments[0].lines[natServices] = strings.Replace(line, old, bad, 1)
	nat[chainServices] = strings.Replace(good, old, bad, 1)
	for _, hold := range []map[plan.PortID]bool{nil, {id: true}} {
		result := n.ask(r, backend.Request{Hold: hold})
		why := result.Refused[id]
		if hold != nil && result.Written+len(result.Refused) != 0 {
			n.Errorf("%s: held: %+v, want nothing done", bad, result)
		}
		if hold == nil && (why == nil || !strings.Contains(why.Error(), "default/web:http (TCP)") || !strings.Contains(why.Error(), bad)) {
			n.Errorf("%s: refused: %v", bad, result.Refused)
		}
		now := n.contents(model.IPv4)
		if strings.Contains(now[Nat][chainServices], "default/web:http") || now[Nat][chainMark] == "" || n.contents(model.IPv6)[Nat][chainServices] == "" {
			n.Errorf("%s: want all but the refused port, got\n%s", bad, now[Nat])
		}
	}
	f.fragments[0].lines[natServices], nat[chainServices] = line, good
	n.apply(r, false)
	for _, f := range model.Families {
		if d := diff(r.families[f].desired, n.contents(f)); d.size() > 0 {
			n.Errorf("%s: still to do:\n%s", bad, d.text())
		}
	}
}

func TestRenderLeavesOutEmptyFamilies(t *testing.T) {
	var b bytes.Buffer
	if err := Compile(planOf(sample.Service(model.IPv4, []string{"10.96.0.11"})), DefaultOptions()).Render(&b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "IPv6") || strings.Count(b.String(), "*nat") != 1 {
		t.Errorf("rendered:\n%s", b.String())
	}
}
