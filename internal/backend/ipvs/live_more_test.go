package ipvs_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

// TestEndpointOnTheNode: who listens at the node's own address, as an API server does, is an endpoint like others.
func TestEndpointOnTheNode(t *testing.T) {
	d := web(func(s *model.Service) {
		s.Type, s.Ports[0].NodePort, s.ExternalIPs = model.NodePort, 30080, sample.Addrs("192.0.2.1")
	})
	for _, sl := range d.Slices {
		sl.Endpoints = []model.Endpoint{{Address: netip.MustParseAddr("192.168.10.11"), Node: "node-a", Ready: true, Serving: true}}
	}
	s := newSite(t, d)
	_, err := s.Node().ServeAll(model.TCP, 8080)
	must(t, err)
	for _, from := range []string{"pods-a", "clients", "node-a"} {
		for _, to := range []string{webIP, "192.0.2.1:80", "192.168.10.11:30080"} {
			tally, err := s.Host(from).Spread(lab.Dial{To: netip.MustParseAddrPort(to), Protocol: model.TCP}, 3)
			must(t, err)
			if tally.Endpoints[netip.MustParseAddrPort("192.168.10.11:8080")] != 3 {
				t.Errorf("%s to %s: %v; %v", from, to, tally.Endpoints, tally.Failures)
			}
		}
	}
}

// TestItself: a pod that gets itself through a Service is answered.
func TestItself(t *testing.T) {
	s := newSite(t, web(nil, 5))
	tally, err := s.Host("pods-a").Spread(s.dial("10.244.1.5", webIP), 3)
	must(t, err)
	if tally.Endpoints[pod(5)] != 3 || tally.Peers[netip.MustParseAddr("10.244.1.5")] != 0 {
		t.Errorf("%v, seen as %v; %v", tally.Endpoints, tally.Peers, tally.Failures)
	}
}

// dualStack is default/web of both families with an endpoint on this node and one on another.
func dualStack(edit func(*model.Service)) model.Delta {
	s, four := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	dual, six := sample.Service(model.IPv6, []string{"fd00:96::a", "fd00:244:0:1::5", "fd00:244:0:2::5"})
	s.ClusterIPs, six.Name.Name = append(s.ClusterIPs, dual.ClusterIPs...), "web-6"
	s.Type, s.Ports[0].NodePort, s.ExternalPolicy = model.LoadBalancer, 30080, model.PolicyLocal
	s.LoadBalancerIPs = sample.Addrs("192.0.2.1", "2001:db8:1b::1")
	edit(s)
	four.Ports[0].Protocol, six.Ports[0].Protocol = s.Ports[0].Protocol, s.Ports[0].Protocol
	return model.Delta{
		Services: map[model.Name]*model.Service{s.Name: s}, Slices: map[model.Name]*model.Slice{four.Name: four, six.Name: six},
	}
}

func TestIPv6(t *testing.T) {
	s := newSite(t, dualStack(func(*model.Service) {}))
	for _, tt := range []struct {
		from, source, to string
		endpoints        int
	}{
		{"pods-a", "fd00:244:0:1::50", "[fd00:96::a]:80", 2},
		{"pods-a", "fd00:244:0:1::50", "[2001:db8:1b::1]:80", 2},
		{"clients", "2001:db8:77::5", "[2001:db8:1b::1]:80", 1},
		{"clients", "2001:db8:77::5", "[fd00:10::11]:30080", 1},
		{"clients", "2001:db8:77::5", "[fd00:96::a]:80", 2},
		{"node-a", "fd00:10::11", "[fd00:96::a]:80", 2},
		{"node-a", "fd00:10::11", "[fd00:10::11]:30080", 2},
	} {
		tally, err := s.Host(tt.from).Spread(s.dial(tt.source, tt.to), 6)
		must(t, err)
		if tally.Forwarded() != 6 || len(tally.Endpoints) != tt.endpoints {
			t.Errorf("%+v: %v; %v", tt, tally.Endpoints, tally.Failures)
		}
		if seen := tally.Peers[netip.MustParseAddr(tt.source)]; tt.endpoints == 1 && seen != 6 {
			t.Errorf("%+v: seen as %v", tt, tally.Peers)
		}
	}
}

func TestSCTP(t *testing.T) {
	s := newSite(t, dualStack(func(s *model.Service) { s.Ports[0].Protocol = model.SCTP }))
	for _, pods := range []string{"pods-a", "pods-b"} {
		_, err := s.Host(pods).ServeAll(model.SCTP, 8080)
		must(t, err)
	}
	for from, to := range map[string]string{"10.244.1.50": webIP, "fd00:244:0:1::50": "[fd00:96::a]:80"} {
		d := s.dial(from, to)
		d.Protocol = model.SCTP
		tally, err := s.Host("pods-a").Spread(d, 4)
		must(t, err)
		if tally.Forwarded() != 4 || len(tally.Endpoints) != 2 {
			t.Errorf("to %s: %v; %v", to, tally.Endpoints, tally.Failures)
		}
	}
}

// TestRenderIsRestored: what is rendered is read by ipvsadm -R, which takes no comments, and comes to what Apply writes.
func TestRenderIsRestored(t *testing.T) {
	for _, edit := range []func(*model.Service){
		func(*model.Service) {},
		func(s *model.Service) { s.Affinity = 3 * time.Hour },
		func(s *model.Service) { s.Scheduler = "mh" },
		func(s *model.Service) { s.Scheduler, s.Ports[0].Protocol = "sh", model.UDP },
		func(s *model.Service) { s.Scheduler, s.Ports[0].Protocol = "wlc", model.SCTP },
	} {
		s := newSite(t, dualStack(edit))
		applied := s.sh("ipvsadm -S -n")
		rendered := text(t, s.ruleset)
		s.cleanup()
		cmd := s.Node().Command(t.Context(), "sh", "-c", "grep ^- | ipvsadm -R")
		cmd.Stdin = strings.NewReader(rendered)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if restored := s.sh("ipvsadm -S -n"); sortedText(restored) != sortedText(applied) {
			t.Errorf("restored:\n%s\napplied:\n%s", restored, applied)
		}
	}
}

func sortedText(lines string) string {
	return strings.Join(slices.Sorted(strings.Lines(lines)), "")
}

// TestLackingScheduler: a scheduler that this kernel does not have is told of, and another one used.
func TestLackingScheduler(t *testing.T) {
	s := newSite(t, web(scheduler("nosuch"), 5))
	if s.fallback == nil || s.fallback.Error() != "this kernel has no scheduler nosuch: rr is used" {
		t.Errorf("told %v", s.fallback)
	}
	s.spread(3)
}

// TestProbe leaves nothing behind.
func TestProbe(t *testing.T) {
	s := newSite(t, web(nil, 5))
	s.cleanup()
	must(t, s.Node().Do(func() error { return s.backend.Probe(t.Context()) }))
	s.cleanup()
}

// TestNodePortsMove: node ports follow the addresses of the node.
func TestNodePortsMove(t *testing.T) {
	s := newSite(t, web(func(s *model.Service) { s.Type, s.Ports[0].NodePort = model.NodePort, 30080 }, 5))
	s.sh("ip address add 192.0.2.77/32 dev lo")
	s.ruleset.Update(s.planner.Plan(), s.planner.SetHost(plan.Host{Addresses: sample.Addrs("192.0.2.77", "192.168.10.11", "fd00:10::11")}))
	s.apply(backend.Request{})
	for _, to := range []string{"192.0.2.77:30080", "192.168.10.11:30080"} {
		tally, err := s.Host("clients").Spread(s.dial("203.0.113.5", to), 3)
		must(t, err)
		if tally.Endpoints[pod(5)] != 3 {
			t.Errorf("%s: %v; %v", to, tally.Endpoints, tally.Failures)
		}
	}
}
