package iptables

import (
	"net/netip"
	"testing"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// The Services of the golden files, the kinds that there are: for each there is an IPv4 and an IPv6 file.
var kinds = []struct {
	name string
	edit func(*model.Service, *model.Slice)
}{
	{"cluster-ip", func(*model.Service, *model.Slice) {}},
	{"affinity", func(s *model.Service, _ *model.Slice) { s.Affinity = 3 * time.Hour }},
	{"round-robin", func(s *model.Service, _ *model.Slice) { s.Balancing = model.BalanceRoundRobin }},
	{"weights", func(s *model.Service, _ *model.Slice) { s.Weights = []model.Weight{{Node: "node-b", Value: 3}} }},
	{"weights-round-robin", func(s *model.Service, _ *model.Slice) {
		s.Balancing, s.Weights = model.BalanceRoundRobin, []model.Weight{{Node: "node-b", Value: 3}}
	}},
	{"no-endpoints", func(s *model.Service, sl *model.Slice) { external(s); sl.Endpoints = nil }},
	{"node-port", func(s *model.Service, _ *model.Slice) { s.Type, s.Ports[0].NodePort = model.NodePort, 30080 }},
	{"external-ips", func(s *model.Service, _ *model.Slice) {
		s.ExternalIPs = addrs("192.0.2.1", "2001:db8::1", "192.168.10.11")
	}},
	{"load-balancer", func(s *model.Service, _ *model.Slice) { external(s) }},
	{"load-balancer-local", func(s *model.Service, _ *model.Slice) {
		external(s)
		s.ExternalPolicy, s.HealthCheckNodePort = model.PolicyLocal, 32000
		s.InternalPolicy = model.PolicyLocal
	}},
	{"load-balancer-no-local-endpoints", func(s *model.Service, sl *model.Slice) {
		external(s)
		s.InternalPolicy, s.ExternalPolicy, sl.Endpoints = model.PolicyLocal, model.PolicyLocal, sl.Endpoints[1:]
	}},
}

// external gives a Service everything that clients outside can connect to.
func external(s *model.Service) {
	s.Type, s.Ports[0].NodePort = model.LoadBalancer, 30080
	s.LoadBalancerIPs = addrs("198.51.100.1", "2001:db8::2")
	s.ExternalIPs = addrs("192.0.2.1", "2001:db8::1")
	s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8:5::/64")}
}

func TestGoldenRules(t *testing.T) {
	for _, kind := range kinds {
		for f, addresses := range [][]string{{"10.96.0.10", "10.244.1.5", "10.244.2.5"}, {"fd00:96::a", "fd00:244:1::5", "fd00:244:2::5"}} {
			s, sl := service(model.Family(f), addresses)
			kind.edit(s, sl)
			r := Compile(planOf(s, sl), DefaultOptions())
			golden(t, kind.name+[]string{".ipv4", ".ipv6"}[f]+".rules", familyText(t, r, model.Family(f)))
		}
	}
}

// service is default/web with port http, a ClusterIP and an endpoint on each of two nodes.
func service(f model.Family, addresses []string) (*model.Service, *model.Slice) {
	name := model.Name{Namespace: "default", Name: "web"}
	s := &model.Service{
		Name: name, Type: model.ClusterIP, ClusterIPs: addrs(addresses[0]),
		Ports: []model.ServicePort{{Name: "http", Protocol: model.TCP, Port: 80}},
	}
	sl := &model.Slice{Name: name, Service: name, Family: f, Ports: []model.SlicePort{{Name: "http", Protocol: model.TCP, Port: 8080}}}
	for i, a := range addresses[1:] {
		sl.Endpoints = append(sl.Endpoints, model.Endpoint{
			Address: netip.MustParseAddr(a), Node: []string{"node-a", "node-b"}[i], Ready: true, Serving: true,
		})
	}
	return s, sl
}

// planOf is the plan of node-a for one Service.
func planOf(s *model.Service, sls ...*model.Slice) *plan.Plan {
	snap := model.NewSnapshot()
	snap.Nodes["node-a"] = &model.Node{Name: "node-a", InternalIPs: addrs("192.168.10.11", "fd00:10::11")}
	snap.Services[s.Name] = s
	for _, sl := range sls {
		snap.Slices[sl.Name] = sl
	}
	cfg := plan.Config{NodeName: "node-a", ClusterCIDRs: []netip.Prefix{
		netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/32"),
	}, LocalhostNodePorts: true}
	return plan.Build(cfg, plan.Host{Addresses: addrs("192.168.10.11", "fd00:10::11")}, snap)
}

func addrs(texts ...string) (as []netip.Addr) {
	for _, t := range texts {
		as = append(as, netip.MustParseAddr(t))
	}
	return as
}

func endpointAt(a netip.Addr) model.Endpoint {
	return model.Endpoint{Address: a, Node: "node-b", Ready: true, Serving: true}
}
