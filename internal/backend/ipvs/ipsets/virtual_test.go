package ipsets

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sync/errgroup"

	"sluice/internal/backend"
	"sluice/internal/backend/ipvs"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/sample"
)

// TestVirtualServers has real packets of all kinds of clients go through the rules and real virtual servers, and come out
// where the plan says; also where INPUT lets nothing in by itself.
func TestVirtualServers(t *testing.T) {
	nstest.RequireIPVS(t)
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
			for _, pods := range []string{"pods-a", "pods-b"} {
				for _, p := range []model.Protocol{model.TCP, model.UDP} {
					if _, err := l.Host(pods).ServeAll(p, 8080); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := l.Node().ServeAll(model.TCP, 22); err != nil {
				t.Fatal(err)
			}
			p := virtualPlan()
			var rules *Backend
			var servers *ipvs.Backend
			at(t, l.Node(), func() error {
				deps, _, err := System(t.Context(), v)
				if err != nil {
					return err
				}
				rules = New(DefaultOptions(), deps)
				servers = ipvs.New(ipvs.Options{}, ipvs.Deps{Rules: rules, Warn: func(err error) { t.Errorf("warned: %v", err) }})
				r := servers.Compile(p)
				for range 2 {
					result, err := servers.Apply(t.Context(), r, backend.Request{})
					if err != nil || len(result.Refused) > 0 {
						return fmt.Errorf("%w; refused %v", err, result.Refused)
					}
				}
				return nil
			})
			t.Cleanup(func() {
				if err := servers.Close(); err != nil {
					t.Error(err)
				}
			})
			packetsArrive(t, l, p)
			give(t, l, rules, "*filter\n:INPUT DROP [0:0]\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n")
			dial(t, l, []flow{
				{aClient, "192.0.2.1:80", plan.Forward},
				{aClient, nodeIP + ":30081", plan.Forward},
				{aPod, "10.96.0.1:80", plan.Forward},
				{aClient, nodeIP + ":22", plan.Drop},
			})
			at(t, l.Node(), func() error { return servers.Cleanup(t.Context()) })
			at(t, l.Node(), func() error { return rules.Cleanup(context.Background()) })
			at(t, l.Node(), func() error {
				found, err := rules.Leftovers(t.Context())
				if len(found) > 0 {
					t.Errorf("left: %q", found)
				}
				return err
			})
		})
	}
}

// virtualPlan has, in both families, Services of each policy with endpoints here, elsewhere and nowhere.
func virtualPlan() *plan.Plan {
	p := plan.NewPlanner(plan.Config{
		NodeName: "node-a", GuardClusterIPs: true,
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/56")},
	})
	own := sample.Addrs("192.168.10.11", "fd00:10::11")
	p.SetHost(plan.Host{Addresses: own})
	d := model.Delta{
		Nodes:        map[string]*model.Node{"node-a": {Name: "node-a", InternalIPs: own}},
		ServiceCIDRs: map[string]*model.ServiceCIDR{"all": {Name: "all", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}},
		Services:     map[model.Name]*model.Service{}, Slices: map[model.Name]*model.Slice{},
	}
	number := 0
	for _, policy := range []model.TrafficPolicy{model.PolicyLocal, model.PolicyCluster} {
		for _, nodes := range [][]string{{"node-a", "node-b"}, {"node-b"}, {}} {
			number++
			addService(d, number, policy, nodes)
		}
	}
	p.Update(d)
	return p.Plan()
}

func addService(d model.Delta, number int, policy model.TrafficPolicy, nodes []string) {
	name := model.Name{Namespace: "default", Name: fmt.Sprint("web-", number)}
	text := func(format string) netip.Addr { return netip.MustParseAddr(fmt.Sprintf(format, number)) }
	s := &model.Service{
		Name: name, Type: model.LoadBalancer, ExternalPolicy: policy, InternalPolicy: policy,
		ClusterIPs:      []netip.Addr{text("10.96.0.%d"), text("fd00:96::%d")},
		LoadBalancerIPs: []netip.Addr{text("192.0.2.%d"), text("2001:db8:1b::%d")},
		ExternalIPs:     []netip.Addr{text("192.0.2.1%d"), text("2001:db8:1b::1%d")},
		Ports: []model.ServicePort{
			{Name: "tcp", Protocol: model.TCP, Port: 80, NodePort: uint16(30080 + number)},
			{Name: "udp", Protocol: model.UDP, Port: 80, NodePort: uint16(30080 + number)},
		},
	}
	if number == 1 {
		s.SourceRanges = []netip.Prefix{
			netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("10.244.1.0/24"), netip.MustParsePrefix("2001:db8:77::/48"),
		}
	}
	d.Services[name] = s
	for f, format := range []string{"10.244.%d.5", "fd00:244:0:%d::5"} {
		sl := &model.Slice{
			Name: model.Name{Namespace: "default", Name: fmt.Sprint(name.Name, "-", f)}, Service: name, Family: model.Family(f),
			Ports: []model.SlicePort{{Name: "tcp", Protocol: model.TCP, Port: 8080}, {Name: "udp", Protocol: model.UDP, Port: 8080}},
		}
		for _, node := range nodes {
			site := map[string]int{"node-a": 1, "node-b": 2}[node]
			sl.Endpoints = append(sl.Endpoints, model.Endpoint{
				Address: netip.MustParseAddr(fmt.Sprintf(format, site)), Node: node, Ready: true, Serving: true,
			})
		}
		d.Slices[sl.Name] = sl
	}
}

// packetsArrive sends a packet of each kind of client to each frontend.
func packetsArrive(t *testing.T, l *lab.Lab, p *plan.Plan) {
	t.Helper()
	clients := [2][]struct{ host, from string }{
		{{"pods-a", aPod}, {"pods-a", "10.244.1.5"}, {"clients", aClient}, {"clients", another}, {"node-a", nodeIP}},
		{{"pods-a", "fd00:244:0:1::50"}, {"pods-a", "fd00:244:0:1::5"}, {"clients", "2001:db8:77::7"}, {"node-a", "fd00:10::11"}},
	}
	var g errgroup.Group
	g.SetLimit(8) // most of the time goes into waiting for what is dropped
	for _, port := range p.Sorted() {
		for _, f := range port.Frontends {
			to := netip.AddrPortFrom(f.Addr, f.Port)
			if f.Kind == plan.NodePort {
				to = netip.AddrPortFrom(p.Node.Primary[port.ID.Family], f.Port)
			}
			for _, c := range clients[port.ID.Family] {
				g.Go(func() error {
					pkt := plan.Packet{From: netip.MustParseAddr(c.from), To: to, Protocol: f.Protocol}
					d := lab.Dial{From: pkt.From, To: to, Protocol: f.Protocol}
					if c.host == "node-a" {
						pkt.Via, d.From = plan.ViaLocal, netip.Addr{} // the kernel takes the address that it is for
					}
					want := p.Decide(pkt)
					d.Timeout = patience(want.Action)
					got, err := l.Host(c.host).Dial(d)
					if err != nil || !arrived(&p.Node, pkt, want, got) {
						t.Errorf("%s %s %s → %s: %v, %v; want %s %v", port.ID, f.Kind, c.from, to, got, err, want.Action, want.Targets)
					}
					return nil
				})
			}
		}
	}
	_ = g.Wait() // each has told its own
}

// arrived reports whether an outcome is one that was decided on.
func arrived(n *plan.Node, pkt plan.Packet, want plan.Decision, got lab.Outcome) bool {
	if got.Action != want.Action || got.Action != plan.Forward {
		return got.Action == want.Action
	}
	for _, target := range want.Targets {
		if target.AddrPort == got.Endpoint {
			masqueraded := n.IsLocal(got.Peer.Addr())
			return masqueraded == (target.Masquerade || pkt.Via == plan.ViaLocal) && (masqueraded || got.Peer.Addr() == pkt.From)
		}
	}
	return false
}
