package iptables

import (
	"net/netip"
	"testing"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/golden"
	"sluice/internal/testkit/sample"
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
		s.ExternalIPs = sample.Addrs("192.0.2.1", "2001:db8::1", "192.168.10.11")
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
	s.LoadBalancerIPs = sample.Addrs("198.51.100.1", "2001:db8::2")
	s.ExternalIPs = sample.Addrs("192.0.2.1", "2001:db8::1")
	s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8:5::/64")}
}

func TestGoldenRules(t *testing.T) {
	for _, kind := range kinds {
		for f, addresses := range [][]string{{"10.96.0.10", "10.244.1.5", "10.244.2.5"}, {"fd00:96::a", "fd00:244:1::5", "fd00:244:2::5"}} {
			s, sl := sample.Service(model.Family(f), addresses)
			kind.edit(s, sl)
			r := Compile(planOf(s, sl), DefaultOptions())
			golden.File(t, kind.name+[]string{".ipv4", ".ipv6"}[f]+".rules", familyText(t, r, model.Family(f)))
		}
	}
}

func endpointAt(a netip.Addr) model.Endpoint {
	return model.Endpoint{Address: a, Node: "node-b", Ready: true, Serving: true}
}

// planOf is the plan of node-a for one Service.
func planOf(s *model.Service, sls ...*model.Slice) *plan.Plan {
	return sample.Plan(plan.Config{LocalhostNodePorts: true}, s, sls...)
}
