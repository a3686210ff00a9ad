package ipsets

import (
	"net/netip"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/golden"
	"sluice/internal/testkit/sample"
)

// The Services of the golden files, the kinds that there are: for each there is an IPv4 and an IPv6 part.
var goldens = []struct {
	name string
	edit func(*model.Service, *model.Slice)
}{
	{"cluster-ip", func(*model.Service, *model.Slice) {}},
	{"no-endpoints", func(s *model.Service, sl *model.Slice) { external(s); sl.Endpoints = nil }},
	{"node-port-sctp", func(s *model.Service, sl *model.Slice) {
		s.Type, s.Ports[0].NodePort = model.NodePort, 30080
		s.Ports[0].Protocol, sl.Ports[0].Protocol = model.SCTP, model.SCTP
	}},
	{"external-ips", func(s *model.Service, _ *model.Slice) {
		s.ExternalIPs = sample.Addrs("192.0.2.1", "2001:db8::1", "192.168.10.11")
	}},
	{"load-balancer", func(s *model.Service, _ *model.Slice) { external(s) }},
	{"load-balancer-local", func(s *model.Service, _ *model.Slice) {
		external(s)
		s.ExternalPolicy, s.HealthCheckNodePort = model.PolicyLocal, 32000
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
	for _, g := range goldens {
		for f, addresses := range [][]string{{"10.96.0.10", "10.244.1.5", "10.244.2.5"}, {"fd00:96::a", "fd00:244:1::5", "fd00:244:2::5"}} {
			s, sl := sample.Service(model.Family(f), addresses)
			g.edit(s, sl)
			golden.File(t, g.name+[]string{".ipv4", ".ipv6"}[f], text(t, compiled(sample.Plan(plan.Config{}, s, sl))))
		}
	}
}
