package plantrace

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/trace"
)

func testPlan(edit ...func(*model.Snapshot)) *plan.Plan {
	name := model.Name{Namespace: "shop", Name: "web"}
	s := model.NewSnapshot()
	s.Nodes["node-a"] = &model.Node{Name: "node-a", InternalIPs: []netip.Addr{netip.MustParseAddr("192.168.10.11")}}
	s.Services[name] = &model.Service{
		Name: name, Type: model.LoadBalancer, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
		LoadBalancerIPs: []netip.Addr{netip.MustParseAddr("192.0.2.5")}, ExternalPolicy: model.PolicyLocal,
		SourceRanges: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")},
		Ports:        []model.ServicePort{{Protocol: model.TCP, Port: 80, NodePort: 30080}},
	}
	s.Slices[name] = &model.Slice{
		Name: name, Service: name, Ports: []model.SlicePort{{Protocol: model.TCP, Port: 8080}},
		Endpoints: []model.Endpoint{
			{Address: netip.MustParseAddr("10.244.2.5"), Node: "node-b", Ready: true, Serving: true},
			{Address: netip.MustParseAddr("10.244.3.5"), Node: "node-c", Ready: true, Serving: true},
		},
	}
	empty := model.Name{Namespace: "shop", Name: "empty"}
	s.Services[empty] = &model.Service{
		Name: empty, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.11")}, Ports: []model.ServicePort{{Protocol: model.TCP, Port: 80}},
	}
	s.ServiceCIDRs["kubernetes"] = &model.ServiceCIDR{Name: "kubernetes", Prefixes: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24")}}
	for _, e := range edit {
		e(s)
	}
	cfg := plan.Config{
		NodeName: "node-a", ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}, GuardClusterIPs: true,
	}
	return plan.Build(cfg, plan.Host{}, s)
}

func TestTrace(t *testing.T) {
	both := func(masquerade ...bool) (es []trace.Endpoint) {
		for i, a := range []string{"10.244.2.5:8080", "10.244.3.5:8080"} {
			es = append(es, trace.Endpoint{Address: netip.MustParseAddrPort(a), Probability: 0.5, Masquerade: masquerade[i]})
		}
		return es
	}
	for name, tt := range map[string]struct {
		from, to  string
		via       plan.Via
		verdict   trace.Verdict
		endpoints []trace.Endpoint
		says      string // in the last step
	}{
		"pod":             {"10.244.1.9", "10.96.0.10:80", plan.ViaForward, trace.Forward, both(false, false), "sees the client's address"},
		"outside":         {"198.51.100.7", "10.96.0.10:80", plan.ViaForward, trace.Forward, both(true, true), "replies come back"},
		"an endpoint":     {"10.244.2.5", "10.96.0.10:80", plan.ViaForward, trace.Forward, both(true, false), "but 10.244.2.5 the node's"},
		"no local one":    {"203.0.113.7", "192.168.10.11:30080", plan.ViaForward, trace.Drop, nil, "externalTrafficPolicy is Local"},
		"source ranges":   {"198.51.100.7", "192.0.2.5:80", plan.ViaForward, trace.Drop, nil, "in none of 203.0.113.0/24"},
		"no endpoints":    {"10.244.1.9", "10.96.0.11:80", plan.ViaForward, trace.Reject, nil, "no endpoints"},
		"no Service":      {"10.244.1.9", "10.97.0.99:80", plan.ViaForward, trace.Unhandled, nil, "routing takes the packet"},
		"another port":    {"10.244.1.9", "10.96.0.11:81", plan.ViaForward, trace.Reject, nil, "10.96.0.11 is a cluster IP, and no Service has 81/TCP there"},
		"nobody's":        {"10.244.1.9", "10.96.0.99:80", plan.ViaForward, trace.Drop, nil, "(of 10.96.0.0/24), and no Service has it"},
		"the node itself": {"10.244.1.9", "192.168.10.11:22", plan.ViaForward, trace.Unhandled, nil, "goes to a process here"},
		"loopback":        {"203.0.113.7", "127.0.0.1:30080", plan.ViaForward, trace.Drop, nil, "comes from outside"},
		"this node":       {"192.168.10.11", "192.168.10.11:30080", plan.ViaLocal, trace.Forward, both(true, true), "replies come back"},
	} {
		t.Run(name, func(t *testing.T) {
			pkt := plan.Packet{From: netip.MustParseAddr(tt.from), To: netip.MustParseAddrPort(tt.to), Protocol: model.TCP, Via: tt.via}
			r := Trace(testPlan(), pkt)
			if r.Verdict != tt.verdict {
				t.Errorf("verdict %s, want %s", r.Verdict, tt.verdict)
			}
			if diff := cmp.Diff(tt.endpoints, r.Endpoints, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
				t.Error(diff)
			}
			if last := r.Steps[len(r.Steps)-1].Says; !strings.Contains(last, tt.says) {
				t.Errorf("the last step says %q, want %q in it", last, tt.says)
			}
		})
	}
}

func TestTraceOfWeights(t *testing.T) {
	for how, says := range map[model.Balancing]string{
		model.BalanceRandom:     "at random, by weight",
		model.BalanceRoundRobin: "round-robin, with turns by weight",
	} {
		p := testPlan(func(s *model.Snapshot) {
			for _, service := range s.Services {
				service.Balancing, service.Weights = how, []model.Weight{{Node: "node-c", Value: 3}}
			}
		})
		r := Trace(p, plan.Packet{From: netip.MustParseAddr("10.244.1.9"), To: netip.MustParseAddrPort("10.96.0.10:80"), Protocol: model.TCP})
		if len(r.Endpoints) != 2 || r.Endpoints[0].Probability != 0.25 || r.Endpoints[1].Probability != 0.75 {
			t.Errorf("%s: endpoints %+v, want shares of 1/4 and 3/4", how, r.Endpoints)
		}
		if !slices.ContainsFunc(r.Steps, func(s trace.Step) bool { return s.Says == says }) {
			t.Errorf("%s: no step says %q: %+v", how, says, r.Steps)
		}
	}
}
