package ipsets

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/kernel/iptexec"
	"sluice/internal/kernel/link"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/sample"
)

// services are three with externalTrafficPolicy Local: with an endpoint on this node, with one on another alone, and
// with none.
func services() *plan.Plan {
	p := plan.NewPlanner(plan.Config{
		NodeName: "node-a", GuardClusterIPs: true,
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/56")},
	})
	p.SetHost(plan.Host{Addresses: sample.Addrs("192.168.10.11", "fd00:10::11")})
	d := model.Delta{
		Nodes:        map[string]*model.Node{"node-a": {Name: "node-a", InternalIPs: sample.Addrs("192.168.10.11", "fd00:10::11")}},
		ServiceCIDRs: map[string]*model.ServiceCIDR{"all": {Name: "all", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}},
		Services:     map[model.Name]*model.Service{}, Slices: map[model.Name]*model.Slice{},
	}
	for i, endpoints := range [][]string{{"10.244.1.5", "10.244.2.5"}, {"", "10.244.2.5"}, {}} {
		s, sl := sample.Service(model.IPv4, append([]string{[]string{"10.96.0.1", "10.96.0.2", "10.96.0.3"}[i]}, endpoints...)[:1])
		name := model.Name{Namespace: "default", Name: []string{"here", "elsewhere", "nowhere"}[i]}
		s.Name, sl.Name, sl.Service = name, name, name
		s.Type, s.ExternalPolicy, s.Ports[0].NodePort = model.LoadBalancer, model.PolicyLocal, uint16(30081+i)
		s.LoadBalancerIPs = sample.Addrs([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}[i])
		if i == 0 {
			s.HealthCheckNodePort = 32000
			s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("10.244.1.0/24")}
		}
		for at, e := range endpoints {
			if e != "" {
				sl.Endpoints = append(sl.Endpoints, model.Endpoint{
					Address: netip.MustParseAddr(e), Node: []string{"node-a", "node-b"}[at], Ready: true, Serving: true,
				})
			}
		}
		d.Services[name], d.Slices[name] = s, sl
	}
	p.Update(d)
	return p.Plan()
}

// TestPackets sends real ones. There is no ipvs in it: a server on the node, at all addresses, stands for virtual servers,
// so that "forward" is what the rules let through to them, or to the host's own daemons.
func TestPackets(t *testing.T) {
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
			p := services()
			r := compiled(p)
			at(t, l.Node(), func() error { return bind(r) })
			for _, port := range []uint16{80, 22, 30081, 30082, 30083, 32000} {
				if _, err := l.Node().Serve(model.TCP, netip.AddrPortFrom(netip.IPv4Unspecified(), port)); err != nil {
					t.Fatal(err)
				}
			}
			var b *Backend
			at(t, l.Node(), func() error {
				deps, _, err := System(t.Context(), v)
				if err != nil {
					return err
				}
				b = New(DefaultOptions(), deps)
				_, err = b.Apply(t.Context(), r, backend.Request{})
				return err
			})
			dial(t, l, flows)
			if got, err := l.Host("pods-a").Ping(netip.MustParseAddr(aPod), netip.MustParseAddr("10.96.0.1")); err != nil || got.Action != plan.Forward {
				t.Errorf("ping: %v, %v", got, err)
			}

			// Marked packets are dropped in INPUT, to tell them from others.
			mark, ok := r.Mark(plan.PortID{Service: model.Name{Namespace: "default", Name: "here"}, Port: "http", Protocol: model.TCP})
			if !ok {
				t.Fatal("no mark")
			}
			give(t, l, b, "*mangle\n-A INPUT -m mark --mark "+hex(mark)+" -j DROP\nCOMMIT\n")
			dial(t, l, markedFlows)
			give(t, l, b, "*mangle\n-F INPUT\nCOMMIT\n*filter\n:INPUT DROP [0:0]\n-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\nCOMMIT\n")
			dial(t, l, closedHost)
		})
	}
}

type flow struct {
	from, to string
	want     plan.Action
}

const (
	aClient = "203.0.113.7"
	another = "198.51.100.7" // not in the source ranges
	aPod    = "10.244.1.50"
	nodeIP  = "192.168.10.11"
)

var flows = []flow{
	{aPod, "10.96.0.1:80", plan.Forward},
	{aPod, "10.96.0.1:22", plan.Reject},
	{aClient, "10.96.0.1:22", plan.Reject},
	{aPod, "10.96.0.3:80", plan.Reject},
	{aPod, "10.96.0.99:80", plan.Drop},
	{"", "10.96.0.99:80", plan.Drop},
	{aClient, "192.0.2.1:80", plan.Forward},
	{another, "192.0.2.1:80", plan.Drop},
	{"", "192.0.2.1:80", plan.Drop},
	{aClient, "192.0.2.1:22", plan.Reject},
	{aClient, "192.0.2.1:30081", plan.Reject},
	{aClient, "192.0.2.1:32000", plan.Forward}, // the health check
	{aClient, "192.0.2.2:80", plan.Drop},
	{aPod, "192.0.2.2:80", plan.Forward},
	{"", "192.0.2.2:80", plan.Forward},
	{aClient, "192.0.2.3:80", plan.Reject},
	{aPod, "192.0.2.3:80", plan.Reject},
	{"", "192.0.2.3:80", plan.Reject},
	{aClient, nodeIP + ":30081", plan.Forward},
	{aClient, nodeIP + ":30082", plan.Drop},
	{aPod, nodeIP + ":30082", plan.Forward},
	{aClient, nodeIP + ":30083", plan.Reject},
	{"", nodeIP + ":30083", plan.Reject},
	{aClient, nodeIP + ":22", plan.Forward},
}

var markedFlows = []flow{
	{aClient, "192.0.2.1:80", plan.Drop},
	{aPod, "192.0.2.1:80", plan.Forward},
	{aPod, nodeIP + ":30081", plan.Forward},
	{"", nodeIP + ":30081", plan.Forward},
	{aClient, nodeIP + ":30081", plan.Drop},
	{aClient, nodeIP + ":22", plan.Forward},
}

// closedHost is a host whose INPUT lets nothing in by itself.
var closedHost = []flow{
	{aClient, "192.0.2.1:80", plan.Forward},
	{aClient, nodeIP + ":30081", plan.Forward},
	{aClient, nodeIP + ":32000", plan.Forward},
	{aClient, nodeIP + ":22", plan.Drop},
	{aClient, "192.0.2.3:80", plan.Reject},
}

func dial(t *testing.T, l *lab.Lab, flows []flow) {
	t.Helper()
	for _, f := range flows {
		d := lab.Dial{To: netip.MustParseAddrPort(f.to), Protocol: model.TCP, Timeout: patience(f.want)}
		from := l.Node()
		if f.from != "" {
			d.From = netip.MustParseAddr(f.from)
			from = l.Host(map[bool]string{true: "pods-a", false: "clients"}[f.from == aPod])
		}
		if got, err := from.Dial(d); err != nil || got.Action != f.want {
			t.Errorf("%q → %s: %v, %v; want %v", f.from, f.to, got, err, f.want)
		}
	}
}

// patience is how long to wait for what is wanted: an answer comes sooner or later, also on a machine that is busy. Silence
// has to be waited for.
func patience(want plan.Action) time.Duration {
	if want == plan.Drop {
		return lab.Silence(model.TCP)
	}
	return 20 * time.Second
}

// bind gives the node the addresses that are on the interface of ipvs.
func bind(r *Ruleset) error {
	h, err := link.Here()
	if err != nil {
		return err
	}
	defer h.Close()
	for e := range r.families[model.IPv4].entries[ipvsIPs] {
		if err := h.AddAddress("lo", netip.PrefixFrom(e.Addr, 32)); err != nil {
			return err
		}
	}
	return nil
}

func at(t *testing.T, h *lab.Host, f func() error) {
	t.Helper()
	if err := h.Do(f); err != nil {
		t.Fatal(err)
	}
}

func give(t *testing.T, l *lab.Lab, b *Backend, text string) {
	t.Helper()
	at(t, l.Node(), func() error { return b.deps.Tables[model.IPv4].Restore(context.Background(), []byte(text)) })
}
