package ipvs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/golden"
	"sluice/internal/testkit/sample"
)

// The Services of the golden files, the kinds that there are. Each has both families.
var kinds = []struct {
	name string
	edit func(*model.Service, [2]*model.Slice)
}{
	{"cluster-ip", func(*model.Service, [2]*model.Slice) {}},
	{"affinity", func(s *model.Service, _ [2]*model.Slice) { s.Affinity = 3 * time.Hour }},
	{"weights", func(s *model.Service, _ [2]*model.Slice) {
		s.Weights = []model.Weight{{Node: "node-a", Value: 3}}
		s.Balancing = model.BalanceLeastConnections
	}},
	{"maglev-udp", func(s *model.Service, sls [2]*model.Slice) {
		s.Scheduler, s.Ports[0].Protocol = "mh", model.UDP
		sls[0].Ports[0].Protocol, sls[1].Ports[0].Protocol = model.UDP, model.UDP
	}},
	{"sctp", func(s *model.Service, sls [2]*model.Slice) {
		s.Ports[0].Protocol, sls[0].Ports[0].Protocol, sls[1].Ports[0].Protocol = model.SCTP, model.SCTP, model.SCTP
	}},
	{"no-endpoints", func(s *model.Service, sls [2]*model.Slice) {
		external(s)
		sls[0].Endpoints, sls[1].Endpoints = nil, nil
	}},
	{"node-port", func(s *model.Service, _ [2]*model.Slice) { s.Type, s.Ports[0].NodePort = model.NodePort, 30080 }},
	{"external-ips", func(s *model.Service, _ [2]*model.Slice) {
		s.ExternalIPs = sample.Addrs("192.0.2.1", "2001:db8::1", "192.168.10.11") // the last one is the node's
	}},
	{"load-balancer-local", func(s *model.Service, _ [2]*model.Slice) {
		external(s)
		s.ExternalPolicy, s.InternalPolicy = model.PolicyLocal, model.PolicyLocal
	}},
	{"load-balancer-no-local-endpoints", func(s *model.Service, sls [2]*model.Slice) {
		external(s)
		s.InternalPolicy, s.ExternalPolicy = model.PolicyLocal, model.PolicyLocal
		for _, sl := range sls {
			sl.Endpoints = sl.Endpoints[1:]
		}
	}},
}

// external gives a Service everything that clients outside can connect to.
func external(s *model.Service) {
	s.Type, s.Ports[0].NodePort = model.LoadBalancer, 30080
	s.LoadBalancerIPs = sample.Addrs("198.51.100.1", "2001:db8::2")
}

// TestGolden has a file for each kind of Service.
func TestGolden(t *testing.T) {
	for _, kind := range kinds {
		golden.File(t, kind.name+".ipvsadm", text(t, compileKind(kind.edit)))
	}
}

// compileKind compiles a dual-stack Service.
func compileKind(edit func(*model.Service, [2]*model.Slice)) *Ruleset {
	s, four := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	dual, six := sample.Service(model.IPv6, []string{"fd00:96::a", "fd00:244:1::5", "fd00:244:2::5"})
	s.ClusterIPs = append(s.ClusterIPs, dual.ClusterIPs...)
	six.Name.Name += "-6"
	edit(s, [2]*model.Slice{four, six})
	return Compile(sample.Plan(plan.Config{}, s, four, six), Options{}, newRules())
}

func text(t testing.TB, r *Ruleset) string {
	t.Helper()
	var b strings.Builder
	if err := r.Render(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReadmeExcerpt keeps what README.md shows equal to what is compiled.
func TestReadmeExcerpt(t *testing.T) {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	external(s)
	s.LoadBalancerIPs = s.LoadBalancerIPs[:1]
	s.ExternalPolicy, s.InternalPolicy = model.PolicyLocal, model.PolicyLocal
	servers, _, _ := strings.Cut(text(t, Compile(sample.Plan(plan.Config{}, s, sl), Options{}, newRules())), "#\n")
	golden.Excerpt(t, "README.md", "    "+strings.ReplaceAll(strings.TrimSpace(servers), "\n", "\n    ")+"\n")
}

// TestNoIPv6: a machine without IPv6 gets nothing of it.
func TestNoIPv6(t *testing.T) {
	s, sl := sample.Service(model.IPv6, []string{"fd00:96::a", "fd00:244:1::5"})
	r := Compile(sample.Plan(plan.Config{}, s, sl), Options{NoIPv6: true}, newRules())
	if got := r.wanted(); len(got) != 0 {
		t.Errorf("wanted\n%s", join(got))
	}
}

func TestSchedulings(t *testing.T) {
	even := []plan.Endpoint{{Weight: 2}, {Weight: 2}}
	uneven := []plan.Endpoint{{Weight: 1}, {Weight: 2}}
	for _, tt := range []struct {
		node string
		port plan.Port
		list []plan.Endpoint
		want []Scheduling
	}{
		{"rr", plan.Port{}, even, []Scheduling{{Scheduler: "rr"}}},
		{"rr", plan.Port{}, uneven, []Scheduling{{Scheduler: "wrr"}, {Scheduler: "rr"}}},
		{"lc", plan.Port{Affinity: time.Hour}, uneven, []Scheduling{
			{"wlc", 0, time.Hour}, {"lc", 0, time.Hour}, {"wrr", 0, time.Hour}, {"rr", 0, time.Hour},
		}},
		{"rr", plan.Port{Affinity: 48 * time.Hour}, even, []Scheduling{{"rr", 0, 24 * time.Hour}}},
		{"sed", plan.Port{Balancing: model.BalanceRandom}, even, []Scheduling{{Scheduler: "sed"}, {Scheduler: "rr"}}},
		{"sed", plan.Port{Balancing: model.BalanceRoundRobin}, even, []Scheduling{{Scheduler: "rr"}, {Scheduler: "sed"}}},
		{"rr", plan.Port{Balancing: model.BalanceLeastConnections}, even, []Scheduling{{Scheduler: "lc"}, {Scheduler: "rr"}}},
		{"sh", plan.Port{Scheduler: "mh", Balancing: model.BalanceRoundRobin}, even, []Scheduling{
			{"mh", hashFallback | hashPort, 0}, {"sh", hashFallback, 0}, {Scheduler: "rr"},
		}},
	} {
		o := Options{Scheduler: tt.node}
		if got := o.schedulings(&tt.port, Server{}, tt.list); !slices.Equal(got, tt.want) {
			t.Errorf("%s, %+v: %+v, want %+v", tt.node, tt.port, got, tt.want)
		}
	}
	o, want := Options{Scheduler: "rr"}, []Scheduling{{"sh", hashFallback, 0}, {Scheduler: "rr"}}
	if got := o.schedulings(&plan.Port{Affinity: time.Hour}, Server{Mark: 1}, even); !slices.Equal(got, want) {
		t.Errorf("affinity behind a mark: %+v, want %+v", got, want)
	}
}
