package plan

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sluice/internal/model"
)

// The world of these tests: node-a is this node.
var (
	clusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/56")}
	nodeA        = &model.Node{
		Name: "node-a", Zone: "zone-1",
		InternalIPs: addrs("192.168.10.11", "fd00:10::11"),
		PodCIDRs:    []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")},
	}
	web    = model.Name{Namespace: "default", Name: "web"}
	config = Config{NodeName: "node-a", ClusterCIDRs: clusterCIDRs}
)

func addrs(texts ...string) (as []netip.Addr) {
	for _, t := range texts {
		as = append(as, netip.MustParseAddr(t))
	}
	return as
}

// service is default/web: port 80, ClusterIP 10.96.0.10.
func service(edit ...func(*model.Service)) *model.Service {
	s := &model.Service{
		Name: web, Type: model.ClusterIP, ClusterIPs: addrs("10.96.0.10"),
		Ports: []model.ServicePort{{Protocol: model.TCP, Port: 80}},
	}
	for _, f := range edit {
		f(s)
	}
	return s
}

// endpoint reads "ADDRESS NODE STATES", where states are of r(eady), s(erving), t(erminating).
func endpoint(addr, node, states string) model.Endpoint {
	e := model.Endpoint{Address: netip.MustParseAddr(addr), Node: node}
	for _, s := range states {
		switch s {
		case 'r':
			e.Ready = true
		case 's':
			e.Serving = true
		case 't':
			e.Terminating = true
		}
	}
	return e
}

func slice(es ...model.Endpoint) *model.Slice {
	return &model.Slice{
		Name: model.Name{Namespace: "default", Name: "web-1"}, Service: web,
		Ports: []model.SlicePort{{Protocol: model.TCP, Port: 8080}}, Endpoints: es,
	}
}

func snapshot(objects ...any) *model.Snapshot {
	s := model.NewSnapshot()
	s.Nodes["node-a"] = nodeA
	for _, o := range objects {
		switch o := o.(type) {
		case *model.Service:
			s.Services[o.Name] = o
		case *model.Slice:
			s.Slices[o.Name] = o
		case *model.Node:
			s.Nodes[o.Name] = o
		case *model.ServiceCIDR:
			s.ServiceCIDRs[o.Name] = o
		}
	}
	return s
}

// packet reads a source and a destination; it is local if the source is node-a's or loopback.
func packet(from, to string) Packet {
	p := Packet{From: netip.MustParseAddr(from), To: netip.MustParseAddrPort(to), Protocol: model.TCP}
	if p.From.IsLoopback() || from == "192.168.10.11" || from == "fd00:10::11" {
		p.Via = ViaLocal
	}
	return p
}

// outcome is a Decision in a form that tests can write down.
type outcome struct {
	Action Action
	To     []string // addresses; "+m" for masquerade
}

func outcomeOf(d Decision) outcome {
	o := outcome{Action: d.Action}
	for _, t := range d.Targets {
		text := t.Addr().String()
		if t.Masquerade {
			text += "+m"
		}
		o.To = append(o.To, text)
	}
	return o
}

func forward(to ...string) outcome { return outcome{Forward, to} }

func wantOutcome(t *testing.T, p *Plan, from, to string, want outcome) {
	t.Helper()
	got := outcomeOf(p.Decide(packet(from, to)))
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s → %s (-want +got):\n%s", from, to, diff)
	}
}

func TestEndpointLists(t *testing.T) {
	zone := func(e model.Endpoint, zones ...string) model.Endpoint {
		e.Hints = &model.Hints{Zones: zones, Nodes: e.NodeHints()}
		return e
	}
	node := func(e model.Endpoint, nodes ...string) model.Endpoint {
		e.Hints = &model.Hints{Zones: e.ZoneHints(), Nodes: nodes}
		return e
	}
	here, there := endpoint("10.244.1.1", "node-a", "rs"), endpoint("10.244.2.1", "node-b", "rs")
	tests := map[string]struct {
		endpoints      []model.Endpoint
		cluster, local []string
		any            bool
	}{
		"none":                                  {},
		"ready":                                 {[]model.Endpoint{here, there}, []string{"10.244.1.1", "10.244.2.1"}, []string{"10.244.1.1"}, true},
		"no node is never local":                {[]model.Endpoint{endpoint("10.244.1.1", "", "rs")}, []string{"10.244.1.1"}, nil, true},
		"nothing usable":                        {[]model.Endpoint{endpoint("10.244.1.1", "node-a", ""), endpoint("10.244.2.1", "node-b", "s")}, nil, nil, false},
		"terminating beside ready":              {[]model.Endpoint{endpoint("10.244.2.2", "node-b", "st"), there}, []string{"10.244.2.1"}, nil, true},
		"only terminating":                      {[]model.Endpoint{endpoint("10.244.1.1", "node-a", "st"), endpoint("10.244.2.2", "node-b", "st")}, []string{"10.244.1.1", "10.244.2.2"}, []string{"10.244.1.1"}, true},
		"terminating here, ready elsewhere":     {[]model.Endpoint{endpoint("10.244.1.1", "node-a", "st"), there}, []string{"10.244.2.1"}, []string{"10.244.1.1"}, true},
		"terminating and not serving":           {[]model.Endpoint{endpoint("10.244.1.1", "node-a", "t")}, nil, nil, false},
		"terminating yet ready is ready":        {[]model.Endpoint{endpoint("10.244.1.1", "node-a", "rst"), there}, []string{"10.244.1.1", "10.244.2.1"}, []string{"10.244.1.1"}, true},
		"zone hints":                            {[]model.Endpoint{zone(here, "zone-2"), zone(there, "zone-1", "zone-3")}, []string{"10.244.2.1"}, []string{"10.244.1.1"}, true},
		"one without a zone hint":               {[]model.Endpoint{zone(here, "zone-2"), there}, []string{"10.244.1.1", "10.244.2.1"}, []string{"10.244.1.1"}, true},
		"no zone hint for us":                   {[]model.Endpoint{zone(here, "zone-2"), zone(there, "zone-2")}, []string{"10.244.1.1", "10.244.2.1"}, []string{"10.244.1.1"}, true},
		"unready ones do not count for hints":   {[]model.Endpoint{zone(here, "zone-2"), endpoint("10.244.2.9", "node-b", "s"), zone(there, "zone-1")}, []string{"10.244.2.1"}, []string{"10.244.1.1"}, true},
		"node hints before zone hints":          {[]model.Endpoint{node(zone(here, "zone-2"), "node-a"), node(zone(there, "zone-1"), "node-b")}, []string{"10.244.1.1"}, []string{"10.244.1.1"}, true},
		"node hints incomplete, so zones count": {[]model.Endpoint{node(zone(here, "zone-2"), "node-a"), zone(there, "zone-1")}, []string{"10.244.2.1"}, []string{"10.244.1.1"}, true},
		"terminating fall-back ignores hints":   {[]model.Endpoint{zone(endpoint("10.244.1.1", "node-a", "st"), "zone-2"), zone(endpoint("10.244.2.2", "node-b", "st"), "zone-1")}, []string{"10.244.1.1", "10.244.2.2"}, []string{"10.244.1.1"}, true},
		"one address twice, the ready one wins": {[]model.Endpoint{endpoint("10.244.1.1", "node-a", "st"), here}, []string{"10.244.1.1"}, []string{"10.244.1.1"}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(config, Host{}, snapshot())
			id := PortID{Service: web, Protocol: model.TCP}
			got := choose(appendCandidates(nil, service(), id, []*model.Slice{slice(tt.endpoints...)}, n.Name), &n)
			want := tt
			if diff := cmp.Diff(want.cluster, texts(got.cluster), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("cluster list (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.local, texts(got.local), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("local list (-want +got):\n%s", diff)
			}
			if got.any != want.any {
				t.Errorf("any = %t, want %t", got.any, want.any)
			}
		})
	}
}

func texts(es []Endpoint) (out []string) {
	for _, e := range es {
		out = append(out, e.Addr().String())
	}
	return out
}

func TestSlicesAreJoinedByNameAndProtocol(t *testing.T) {
	s := slice(endpoint("10.244.1.1", "node-a", "rs"))
	s.Ports = []model.SlicePort{
		{Name: "http", Protocol: model.TCP, Port: 80},
		{Protocol: model.UDP, Port: 81},
		{Protocol: model.TCP, Port: 82},
	}
	p := Build(config, Host{}, snapshot(service(), s))
	got := p.Ports[PortID{Service: web, Protocol: model.TCP}].Cluster
	if len(got) != 1 || got[0].Port() != 82 {
		t.Errorf("endpoints = %v, want port 82 alone", got)
	}
}

func TestSourceRanges(t *testing.T) {
	ranged := func(ranges ...string) *model.Service {
		return service(func(s *model.Service) {
			s.Type = model.LoadBalancer
			s.LoadBalancerIPs = addrs("192.0.2.1")
			s.ExternalIPs = addrs("198.51.100.9")
			s.Ports[0].NodePort = 30080
			for _, r := range ranges {
				s.SourceRanges = append(s.SourceRanges, netip.MustParsePrefix(r))
			}
		})
	}
	sl := slice(endpoint("10.244.1.1", "node-a", "rs"))
	tests := []struct {
		service  *model.Service
		from, to string
		want     outcome
	}{
		{ranged("203.0.113.0/24"), "203.0.113.5", "192.0.2.1:80", forward("10.244.1.1+m")},
		{ranged("203.0.113.0/24"), "198.51.100.5", "192.0.2.1:80", outcome{Action: Drop}},
		{ranged("203.0.113.0/24"), "10.244.1.50", "192.0.2.1:80", outcome{Action: Drop}},
		{ranged("203.0.113.0/24"), "198.51.100.5", "192.168.10.11:30080", forward("10.244.1.1+m")},
		{ranged("203.0.113.0/24"), "198.51.100.5", "198.51.100.9:80", forward("10.244.1.1+m")},
		{ranged("2001:db8::/32"), "198.51.100.5", "192.0.2.1:80", forward("10.244.1.1+m")},
		{ranged("203.0.113.0/24", "0.0.0.0/0"), "198.51.100.5", "192.0.2.1:80", forward("10.244.1.1+m")},
		{ranged("192.168.10.0/24"), "192.168.10.11", "192.0.2.1:80", forward("10.244.1.1+m")},
		{ranged("192.168.10.0/24"), "192.0.2.1", "192.0.2.1:80", forward("10.244.1.1+m")},
		{ranged("203.0.113.0/24"), "192.0.2.1", "192.0.2.1:80", outcome{Action: Drop}},
	}
	for _, tt := range tests {
		wantOutcome(t, Build(config, Host{}, snapshot(tt.service, sl)), tt.from, tt.to, tt.want)
	}
	none := Build(config, Host{}, snapshot(ranged("203.0.113.0/24")))
	wantOutcome(t, none, "198.51.100.5", "192.0.2.1:80", outcome{Action: Drop})
	wantOutcome(t, none, "203.0.113.5", "192.0.2.1:80", outcome{Action: Reject})
}

func TestClashesHaveOneStableWinner(t *testing.T) {
	claimant := func(name string, age int, edit func(*model.Service)) *model.Service {
		return service(func(s *model.Service) {
			s.Name.Name = name
			s.Created = time.Unix(int64(age), 0)
			edit(s)
		})
	}
	external := func(s *model.Service) {
		s.ClusterIPs, s.ExternalIPs = addrs("10.96.0.99"), addrs("10.96.0.10", "198.51.100.9")
	}
	old := claimant("old", 1, external)
	young := claimant("young", 2, external)
	cluster := claimant("cluster", 3, func(*model.Service) {})
	p := NewPlanner(config)
	p.Update(model.Delta(*snapshot(young, cluster)))
	owner := func(key string) string {
		addr := netip.MustParseAddrPort(key)
		port, _, ok := p.Plan().Owner(Key{addr.Addr(), model.TCP, addr.Port()})
		if !ok {
			return ""
		}
		return port.ID.Service.Name
	}
	check := func(want map[string]string) {
		t.Helper()
		for key, name := range want {
			if got := owner(key); got != name {
				t.Errorf("owner of %s = %q, want %q", key, got, name)
			}
		}
	}
	check(map[string]string{"10.96.0.10:80": "cluster", "198.51.100.9:80": "young", "10.96.0.99:80": "young"})
	p.Update(model.Delta{Services: map[model.Name]*model.Service{old.Name: old}})
	check(map[string]string{"10.96.0.10:80": "cluster", "198.51.100.9:80": "old", "10.96.0.99:80": "old"})
	lost := p.Plan().Ports[PortID{Service: young.Name, Protocol: model.TCP}]
	if len(lost.Lost) != 3 || len(lost.Frontends) != 0 || len(lost.Problems()) != 3 {
		t.Errorf("young = %+v, want three losses told", lost)
	}
	p.Update(model.Delta{Services: map[model.Name]*model.Service{old.Name: nil, cluster.Name: nil}})
	check(map[string]string{"10.96.0.10:80": "young", "198.51.100.9:80": "young", "10.96.0.99:80": "young"})
}

func TestNodePortAddresses(t *testing.T) {
	host := Host{Addresses: addrs("192.168.10.11", "172.20.0.11", "127.0.0.1", "fd00:10::11", "::1")}
	prefixes := func(texts ...string) (ps []netip.Prefix) {
		for _, text := range texts {
			ps = append(ps, netip.MustParsePrefix(text))
		}
		return ps
	}
	tests := map[string]struct {
		list   NodePortAddresses
		v4, v6 NodePorts
	}{
		"unset":              {NodePortAddresses{}, NodePorts{All: true, Loopback: true}, NodePorts{All: true}},
		"all":                {NodePortAddresses{All: true}, NodePorts{All: true, Loopback: true}, NodePorts{All: true}},
		"primary":            {NodePortAddresses{Primary: true}, NodePorts{Addresses: addrs("192.168.10.11")}, NodePorts{Addresses: addrs("fd00:10::11")}},
		"localhost":          {NodePortAddresses{Localhost: true}, NodePorts{Loopback: true}, NodePorts{}},
		"a range":            {NodePortAddresses{Prefixes: prefixes("172.16.0.0/12")}, NodePorts{Addresses: addrs("172.20.0.11")}, NodePorts{All: true, Unlisted: true}},
		"a zero range":       {NodePortAddresses{Prefixes: prefixes("172.16.0.0/12", "0.0.0.0/0", "::1/128")}, NodePorts{All: true, Loopback: true}, NodePorts{}},
		"loopback in ranges": {NodePortAddresses{Prefixes: prefixes("127.0.0.0/8", "192.168.0.0/16"), Primary: true}, NodePorts{Addresses: addrs("192.168.10.11"), Loopback: true}, NodePorts{Addresses: addrs("fd00:10::11")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := config
			cfg.NodePortAddresses, cfg.LocalhostNodePorts = tt.list, true
			n := newNode(cfg, host, snapshot())
			if diff := cmp.Diff([2]NodePorts{tt.v4, tt.v6}, n.NodePorts, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("primary of a family that the node lacks", func(t *testing.T) {
		cfg := config
		cfg.NodePortAddresses.Primary = true
		n := newNode(cfg, Host{}, snapshot(&model.Node{Name: "node-a", InternalIPs: addrs("192.168.10.11")}))
		if n.NodePorts[model.IPv6].All || len(n.NodePorts[model.IPv6].Addresses) > 0 {
			t.Errorf("IPv6 node ports = %+v, want none", n.NodePorts[model.IPv6])
		}
	})
}

func TestExplainNamesTheRule(t *testing.T) {
	p := NewPlanner(config)
	p.Update(model.Delta(*snapshot(service(), slice(
		endpoint("10.244.1.1", "node-a", "rs"),
		endpoint("10.244.1.2", "node-a", "st"),
		endpoint("10.244.2.1", "node-b", "s"),
		endpoint("10.244.2.2", "node-b", ""),
		endpoint("10.244.1.1", "node-a", "st"),
	))))
	var got [][2]string
	for _, c := range p.Explain(PortID{Service: web, Protocol: model.TCP}) {
		got = append(got, [2]string{c.Address.Addr().String(), c.Cluster.String()})
	}
	want := [][2]string{
		{"10.244.1.1", "used"},
		{"10.244.1.1", "a second entry for the same address"},
		{"10.244.1.2", "terminating, and there are ready endpoints"},
		{"10.244.2.1", "not ready"},
		{"10.244.2.2", "not serving"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHealthCheckNodePort(t *testing.T) {
	lb := service(func(s *model.Service) {
		s.Type, s.ExternalPolicy, s.HealthCheckNodePort = model.LoadBalancer, model.PolicyLocal, 31900
		s.Ports = append(s.Ports, model.ServicePort{Name: "b", Protocol: model.TCP, Port: 81})
	})
	sl := slice(endpoint("10.244.1.1", "node-a", "rs"), endpoint("10.244.1.2", "node-a", "st"), endpoint("10.244.2.1", "node-b", "rs"))
	sl.Ports = append(sl.Ports, model.SlicePort{Name: "b", Protocol: model.TCP, Port: 8081})
	p := Build(config, Host{}, snapshot(lb, sl))
	first := p.Ports[PortID{Service: web, Protocol: model.TCP}]
	if first.HealthCheck == nil || *first.HealthCheck != (HealthCheck{Port: 31900, Ready: 1}) {
		t.Errorf("health check = %+v, want port 31900 with one address", first.HealthCheck)
	}
	if second := p.Ports[PortID{Service: web, Port: "b", Protocol: model.TCP}]; second.HealthCheck != nil {
		t.Errorf("the second port has a health check too: %+v", second.HealthCheck)
	}
	wantOutcome(t, p, "203.0.113.5", "192.168.10.11:31900", outcome{Action: Unhandled})
}
