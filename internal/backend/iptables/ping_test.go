package iptables

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/golden"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/sample"
)

// pinged are the rules of a Service of two ports and two families whose cluster IPs answer echo requests.
func pinged(answer bool) *Ruleset {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
	s.ClusterIPs = sample.Addrs("10.96.0.10", "fd00:96::a")
	s.Ports = append(s.Ports, model.ServicePort{Name: "https", Protocol: model.TCP, Port: 443})
	six := *sl
	six.Name.Name, six.Family = "web-6", model.IPv6
	six.Endpoints = []model.Endpoint{endpointAt(sample.Addrs("fd00:244:2::5")[0])}
	return Compile(sample.Plan(plan.Config{AnswerPing: answer}, s, sl, &six), DefaultOptions())
}

func TestGoldenPing(t *testing.T) {
	for f, ends := range []string{".ipv4.rules", ".ipv6.rules"} {
		golden.File(t, "ping"+ends, familyText(t, pinged(true), model.Family(f)))
	}
}

// No address of a node, no answer; and who does not ask for answers has no rule more than before.
func TestPingIsOffByDefault(t *testing.T) {
	if rules := text(t, pinged(false)); strings.Contains(rules, "icmp-type") || strings.Contains(rules, "icmpv6-type") || strings.Contains(rules, chainPing) {
		t.Error(rules)
	}
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
	p := sample.Plan(plan.Config{AnswerPing: true}, s, sl)
	p.Node.Primary[model.IPv4] = netip.Addr{}
	if rules := familyText(t, Compile(p, DefaultOptions()), model.IPv4); strings.Contains(rules, chainPing) {
		t.Error(rules)
	}
}

func TestPingRulesComeAndGo(t *testing.T) {
	eachVariant(t, func(n *node) {
		n.apply(pinged(true), false)
		for _, recheck := range []bool{false, true} {
			if r := n.apply(pinged(true), recheck); r.Written != 0 || r.Restored != nil {
				n.Errorf("recheck %v: %+v", recheck, r)
			}
		}
		n.restart()
		if r := n.apply(pinged(true), false); r.Written != 0 || r.Former != nil {
			n.Errorf("another process: %+v", r)
		}
		for _, f := range model.Families {
			n.give(f, "*nat\n-F KUBE-CLUSTER-PING\nCOMMIT\n")
		}
		if r := n.apply(pinged(true), true); len(r.Restored) != 2 || r.Written != 2 {
			n.Errorf("somebody took the rules away: %+v", r)
		}
		n.apply(pinged(false), false)
		for _, f := range model.Families {
			if _, ok := n.contents(f)[Nat][chainPing]; ok {
				n.Errorf("%s: the chain is still there", f)
			}
		}
		n.apply(pinged(true), false)
		n.do(n.backend.Cleanup)
		for _, f := range model.Families {
			if _, ok := n.contents(f)[Nat][chainPing]; ok {
				n.Errorf("%s: Cleanup leaves the chain", f)
			}
		}
	})
}

// Real pings, of pods, of clients outside and of the node itself.
func TestClusterIPsAnswerPing(t *testing.T) {
	nstest.Require(t)
	for _, v := range []iptexec.Variant{iptexec.NFT, iptexec.Legacy} {
		t.Run(string(v), func(t *testing.T) {
			l, err := lab.Up(lab.Reference())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
			var b *Backend
			at := func(f func(context.Context) error) {
				t.Helper()
				if err := l.Node().Do(func() error { return f(t.Context()) }); err != nil {
					t.Fatal(err)
				}
			}
			at(func(ctx context.Context) error {
				deps, _, err := System(ctx, v)
				b = New(DefaultOptions(), deps)
				return err
			})
			for _, want := range []plan.Action{plan.Forward, plan.Reject} { // the network does not take them back
				at(func(ctx context.Context) error {
					_, err := b.Apply(ctx, pinged(want == plan.Forward), backend.Request{})
					return err
				})
				for _, p := range []struct{ host, from, to string }{
					{"pods-a", "10.244.1.50", "10.96.0.10"},
					{"clients", "203.0.113.7", "10.96.0.10"},
					{"node-a", "", "10.96.0.10"},
					{"pods-a", "fd00:244:0:1::50", "fd00:96::a"},
					{"clients", "2001:db8:77::7", "fd00:96::a"},
					{"node-a", "", "fd00:96::a"},
				} {
					var from netip.Addr
					if p.from != "" {
						from = netip.MustParseAddr(p.from)
					}
					if got, err := l.Host(p.host).Ping(from, netip.MustParseAddr(p.to)); err != nil || got.Action != want {
						t.Errorf("%s pings %s: %v, %v; want %s", p.host, p.to, got, err, want)
					}
				}
				if got, err := l.Host("pods-a").Ping(netip.MustParseAddr("10.244.1.50"), netip.MustParseAddr("10.96.0.11")); err != nil || got.Action != plan.Reject {
					t.Errorf("an address of no Service: %v, %v", got, err)
				}
			}
		})
	}
}
