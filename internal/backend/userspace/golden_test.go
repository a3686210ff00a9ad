package userspace

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/golden"
	"sluice/internal/testkit/sample"
)

// The Services of the golden files; what the inner mode makes of them is its own business, and left out.
var kinds = []struct {
	name string
	edit func(*model.Service, *model.Slice)
}{
	{"cluster-ip", func(*model.Service, *model.Slice) {}},
	{"no-endpoints", func(_ *model.Service, sl *model.Slice) { sl.Endpoints = nil }},
	{"load-balancer-local", loadBalancerLocal},
	{"affinity", func(s *model.Service, _ *model.Slice) { s.Affinity = 3 * time.Hour }},
	{"weights-least-connections", func(s *model.Service, _ *model.Slice) {
		s.Balancing, s.Weights = model.BalanceLeastConnections, []model.Weight{{Node: "node-b", Value: 3}}
	}},
	{"random-proxy-protocol", func(s *model.Service, _ *model.Slice) { s.Balancing, s.ProxyProtocol = model.BalanceRandom, 2 }},
	{"udp", func(s *model.Service, sl *model.Slice) {
		s.Ports[0].Protocol, sl.Ports[0].Protocol = model.UDP, model.UDP
	}},
	{"sctp", func(s *model.Service, sl *model.Slice) {
		s.Ports[0].Protocol, sl.Ports[0].Protocol = model.SCTP, model.SCTP
	}},
}

func loadBalancerLocal(s *model.Service, _ *model.Slice) {
	s.Type, s.ExternalPolicy, s.HealthCheckNodePort = model.LoadBalancer, model.PolicyLocal, 32000
	s.Ports[0].NodePort, s.LoadBalancerIPs = 30080, sample.Addrs("198.51.100.1", "2001:db8::2")
}

func TestGoldenTargets(t *testing.T) {
	for _, kind := range kinds {
		for f, addresses := range [][]string{{"10.96.0.10", "10.244.1.5", "10.244.2.5"}, {"fd00:96::a", "fd00:244:1::5", "fd00:244:2::5"}} {
			s, sl := sample.Service(model.Family(f), addresses)
			kind.edit(s, sl)
			r := Compile(sample.Plan(plan.Config{}, s, sl), DefaultOptions(), compileInner)
			golden.File(t, kind.name+[]string{".ipv4", ".ipv6"}[f]+".targets", text(t, r))
		}
	}
}

func text(t testing.TB, r *Ruleset) string {
	t.Helper()
	var b strings.Builder
	if err := r.Render(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReadmeExcerpt keeps what README.md shows equal to what is rendered.
func TestReadmeExcerpt(t *testing.T) {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	loadBalancerLocal(s, sl)
	r := Compile(sample.Plan(plan.Config{}, s, sl), DefaultOptions(), compileInner)
	var excerpt string
	for line := range strings.Lines(text(t, r)) {
		if strings.HasPrefix(line, "#") {
			excerpt += "    " + line
		}
	}
	golden.Excerpt(t, "README.md", excerpt)
}

func TestTrace(t *testing.T) {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	s.Weights = []model.Weight{{Node: "node-b", Value: 3}}
	r := Compile(sample.Plan(plan.Config{}, s, sl), DefaultOptions(), compileInner)
	res := r.Trace(plan.Packet{
		From: sample.Addrs("10.244.1.9")[0], To: netip.AddrPortFrom(s.ClusterIPs[0], 80), Protocol: model.TCP,
	})
	if len(res.Endpoints) != 2 || res.Endpoints[0].Probability != 0.25 || res.Endpoints[1].Probability != 0.75 || !res.Endpoints[0].Masquerade {
		t.Errorf("endpoints %+v, want shares of 1/4 and 3/4 that see the node", res.Endpoints)
	}
	last := res.Steps[len(res.Steps)-1]
	if want := "round robin over 2 endpoints"; !strings.Contains(last.Says, want) || !strings.Contains(last.At, "userspace proxy") {
		t.Errorf("the last step is %+v, want %q", last, want)
	}
}
