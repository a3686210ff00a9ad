package nftables

import (
	"net/netip"
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
	{"round-robin", func(s *model.Service, _ [2]*model.Slice) { s.Balancing = model.BalanceRoundRobin }},
	{"round-robin-affinity", func(s *model.Service, _ [2]*model.Slice) {
		s.Balancing, s.Affinity = model.BalanceRoundRobin, 10*time.Minute
	}},
	{"no-endpoints", func(s *model.Service, sls [2]*model.Slice) {
		external(s)
		sls[0].Endpoints, sls[1].Endpoints = nil, nil
	}},
	{"node-port", func(s *model.Service, _ [2]*model.Slice) { s.Type, s.Ports[0].NodePort = model.NodePort, 30080 }},
	{"external-ips", func(s *model.Service, _ [2]*model.Slice) {
		s.ExternalIPs = sample.Addrs("192.0.2.1", "2001:db8::1", "192.168.10.11")
	}},
	{"load-balancer", func(s *model.Service, _ [2]*model.Slice) { external(s) }},
	{"load-balancer-local", func(s *model.Service, _ [2]*model.Slice) {
		external(s)
		s.ExternalPolicy, s.HealthCheckNodePort = model.PolicyLocal, 32000
		s.InternalPolicy = model.PolicyLocal
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
	s.ExternalIPs = sample.Addrs("192.0.2.1", "2001:db8::1")
	s.SourceRanges = []netip.Prefix{
		netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("203.0.113.0/28"), netip.MustParsePrefix("2001:db8:5::/64"),
	}
}

// TestGoldenElements has a file for each kind of Service: its elements, and the chains that others do not have.
func TestGoldenElements(t *testing.T) {
	for _, kind := range kinds {
		golden.File(t, kind.name+".elements", added(compileKind(kind.edit), Compile(planOf(&model.Service{}), DefaultOptions())))
	}
}

// TestGoldenElementsForIPVS has what is not the same for all Services.
func TestGoldenElementsForIPVS(t *testing.T) {
	for _, kind := range kinds {
		switch kind.name {
		case "affinity", "load-balancer-local", "load-balancer-no-local-endpoints":
			golden.File(t, kind.name+"-ipvs.elements", added(compileWith(kind.edit, ipvsOptions()), Compile(planOf(&model.Service{}), ipvsOptions())))
		}
	}
}

// compileKind compiles a dual-stack Service.
func compileKind(edit func(*model.Service, [2]*model.Slice)) *Ruleset {
	return compileWith(edit, DefaultOptions())
}

func compileWith(edit func(*model.Service, [2]*model.Slice), opts Options) *Ruleset {
	s, four := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5", "10.244.2.5"})
	dual, six := sample.Service(model.IPv6, []string{"fd00:96::a", "fd00:244:1::5", "fd00:244:2::5"})
	s.ClusterIPs = append(s.ClusterIPs, dual.ClusterIPs...)
	six.Name.Name += "-6"
	edit(s, [2]*model.Slice{four, six})
	return Compile(planOf(s, four, six), opts)
}

// added is what r has and empty has not, as text.
func added(r, empty *Ruleset) (text string) {
	there := map[string]bool{}
	each := func(r *Ruleset, line func(string)) {
		c := r.contents()
		for set := range c.setIDs {
			for e := range c.elements(set, references{}) {
				line(set.name() + ": " + sets[set].ElementString(e) + "\n")
			}
		}
		for ch := range c.chains {
			line("\n" + chainText(ch))
		}
	}
	each(empty, func(line string) { there[line] = true })
	each(r, func(line string) {
		if !there[line] {
			text += line
		}
	})
	return text
}

// TestGoldenTables has the whole table for some nodes, without any Service.
func TestGoldenTables(t *testing.T) {
	ranges := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/32")}
	for name, tt := range map[string]struct {
		cfg  plan.Config
		opts Options
	}{
		"plain":     {plan.Config{}, DefaultOptions()},
		"cidr":      {plan.Config{ClusterCIDRs: ranges, LocalhostNodePorts: true, GuardClusterIPs: true}, DefaultOptions()},
		"interface": {plan.Config{DetectLocal: plan.DetectInterfaceNamePrefix, InterfaceNamePrefix: "cali", NodePortAddresses: plan.NodePortAddresses{Primary: true}}, Options{MasqueradeBit: 3, TCPBeLiberal: true}},
		"ping":      {plan.Config{AnswerPing: true, GuardClusterIPs: true}, DefaultOptions()},
		"ipvs":      {plan.Config{ClusterCIDRs: ranges}, ipvsOptions()},
	} {
		snap := model.NewSnapshot()
		snap.Nodes["node-a"] = &model.Node{Name: "node-a", InternalIPs: sample.Addrs("192.168.10.11", "fd00:10::11")}
		snap.ServiceCIDRs["kubernetes"] = &model.ServiceCIDR{Name: "kubernetes", Prefixes: []netip.Prefix{
			netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:96::/112"),
		}}
		golden.File(t, name+".nft", text(t, Compile(plan.Build(tt.cfg, plan.Host{}, snap), tt.opts)))
	}
}

func endpointAt(a netip.Addr) model.Endpoint {
	return model.Endpoint{Address: a, Node: "node-b", Ready: true, Serving: true}
}

// planOf is the plan of node-a for one Service.
func planOf(s *model.Service, sls ...*model.Slice) *plan.Plan {
	return sample.Plan(plan.Config{}, s, sls...)
}
