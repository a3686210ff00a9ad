package plan

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/internal/model"
)

// TestIncrementalEqualsFull changes objects at random, few enough that they clash, and compares after each change.
func TestIncrementalEqualsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPlanner(config)
		snap := model.NewSnapshot()
		before := map[PortID]*Port{}
		var host Host
		cfg := config
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			d := drawDelta(t)
			snap.Apply(d)
			changes := p.Update(d)
			follow(before, changes)
			if rapid.Bool().Draw(t, "addresses change") {
				host.Addresses = addrs(rapid.SampledFrom([]string{"192.168.10.11", "10.96.0.2", "192.0.2.1"}).Draw(t, "address"))
				follow(before, p.SetHost(host))
			}
			if rapid.IntRange(0, 3).Draw(t, "policy changes") == 0 {
				cfg.IgnoreExternalIPs = !cfg.IgnoreExternalIPs
				follow(before, p.SetConfig(cfg))
			}
			full := Build(cfg, host, snap)
			if diff := cmp.Diff(full.Ports, p.Plan().Ports, comparers); diff != "" {
				t.Fatalf("ports (-full +incremental):\n%s", diff)
			}
			if diff := cmp.Diff(full.Node, p.Plan().Node, comparers); diff != "" {
				t.Fatalf("node (-full +incremental):\n%s", diff)
			}
			if diff := cmp.Diff(full.claims, p.plan.claims, comparers); diff != "" {
				t.Fatalf("claims (-full +incremental):\n%s", diff)
			}
			if diff := cmp.Diff(full.known, p.plan.known, comparers); diff != "" {
				t.Fatalf("known addresses (-full +incremental):\n%s", diff)
			}
			var count [2]int
			for id := range full.Ports {
				count[id.Family]++
			}
			if p.plan.count != count {
				t.Fatalf("%v ports are counted, want %v", p.plan.count, count)
			}
			if diff := cmp.Diff(full.Ports, before, comparers); diff != "" {
				t.Fatalf("changes do not lead to the plan (-plan +changes):\n%s", diff)
			}
			if again := p.Update(d); !again.Empty() {
				t.Fatalf("the same update again makes changes: %+v", again)
			}
		}
	})
}

// follow applies changes to ports.
func follow(ports map[PortID]*Port, changes Changes) {
	for _, c := range changes.Ports {
		if c.New == nil {
			delete(ports, c.ID)
		} else {
			ports[c.ID] = c.New
		}
	}
}

var comparers = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmp.AllowUnexported(claim{}, claimants{}, use{}),
}

func drawDelta(t *rapid.T) model.Delta {
	d := model.Delta{
		Services: map[model.Name]*model.Service{}, Slices: map[model.Name]*model.Slice{},
		Nodes: map[string]*model.Node{}, ServiceCIDRs: map[string]*model.ServiceCIDR{},
	}
	name := model.Name{Namespace: "ns", Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
	gone := rapid.IntRange(0, 3).Draw(t, "gone") == 0
	switch rapid.SampledFrom([]string{"service", "service", "slice", "slice", "node", "range"}).Draw(t, "kind") {
	case "service":
		d.Services[name] = nil
		if !gone {
			d.Services[name] = drawService(t, name)
		}
	case "slice":
		of := name
		name.Name = rapid.SampledFrom([]string{"s1", "s2", "s3"}).Draw(t, "slice")
		d.Slices[name] = nil
		if !gone {
			d.Slices[name] = drawSlice(t, name, of)
		}
	case "node":
		d.Nodes["node-a"] = nil
		if !gone {
			n := *nodeA
			n.Zone = rapid.SampledFrom([]string{"", "zone-1", "zone-2"}).Draw(t, "zone")
			d.Nodes["node-a"] = &n
		}
	case "range":
		d.ServiceCIDRs[name.Name] = nil
		if !gone {
			d.ServiceCIDRs[name.Name] = serviceCIDR(name.Name, rapid.SampledFrom([]string{"10.96.0.0/16", "10.96.0.0/24", "fd00:96::/112"}).Draw(t, "range"))
		}
	}
	return d
}

func drawService(t *rapid.T, name model.Name) *model.Service {
	policy := rapid.SampledFrom([]model.TrafficPolicy{model.PolicyCluster, model.PolicyLocal})
	s := &model.Service{
		Name: name, Created: time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0),
		Type:           rapid.SampledFrom([]model.ServiceType{model.ClusterIP, model.LoadBalancer, model.ExternalName}).Draw(t, "type"),
		ClusterIPs:     addrs(rapid.SampledFrom([]string{"10.96.0.1", "10.96.0.2", "fd00:96::1"}).Draw(t, "clusterIP")),
		InternalPolicy: policy.Draw(t, "internal"), ExternalPolicy: policy.Draw(t, "external"),
		HealthCheckNodePort: rapid.SampledFrom([]uint16{0, 30001}).Draw(t, "healthCheck"),
	}
	if rapid.Bool().Draw(t, "external") {
		s.ExternalIPs, s.LoadBalancerIPs = addrs("10.96.0.2", "198.51.100.1"), addrs("198.51.100.1", "192.0.2.1")
		s.SourceRanges = []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}
	}
	s.Weights = rapid.SampledFrom([][]model.Weight{nil, {{Node: "node-a", Value: 2}}, {{Pod: "*", Value: 3}}}).Draw(t, "weights")
	for i := range rapid.IntRange(1, 2).Draw(t, "ports") {
		s.Ports = append(s.Ports, model.ServicePort{
			Name: fmt.Sprint("p", i), Protocol: model.TCP, Port: uint16(80 + i),
			NodePort: rapid.SampledFrom([]uint16{0, 30001, 30002}).Draw(t, "nodePort"),
		})
	}
	return s
}

func drawSlice(t *rapid.T, name, service model.Name) *model.Slice {
	s := &model.Slice{Name: name, Service: service, Ports: []model.SlicePort{{Name: "p0", Protocol: model.TCP, Port: 8080}}}
	for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		e := endpoint(
			rapid.SampledFrom([]string{"10.244.1.1", "10.244.1.2", "10.244.2.1"}).Draw(t, "address"),
			rapid.SampledFrom([]string{"node-a", "node-b", ""}).Draw(t, "node"),
			rapid.SampledFrom([]string{"rs", "st", "s", "", "rst"}).Draw(t, "states"),
		)
		e.Hints = rapid.SampledFrom([]*model.Hints{nil, {Zones: []string{"zone-1"}}, {Zones: []string{"zone-2"}}}).Draw(t, "hints")
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func TestSetHostFollowsAddresses(t *testing.T) {
	cfg := config
	cfg.NodePortAddresses.Prefixes = []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")}
	p := NewPlanner(cfg)
	s := service(func(s *model.Service) { s.Type, s.Ports[0].NodePort = model.NodePort, 30080 })
	p.Update(model.Delta(*snapshot(s, slice(endpoint("10.244.1.1", "node-a", "rs")))))
	wantOutcome(t, p.Plan(), "203.0.113.5", "172.20.0.11:30080", outcome{Action: Unhandled})
	if c := p.SetHost(Host{Addresses: addrs("192.168.10.11", "172.20.0.11")}); !c.Node {
		t.Error("a new address does not count as a change of the node")
	}
	wantOutcome(t, p.Plan(), "203.0.113.5", "172.20.0.11:30080", forward("10.244.1.1+m"))
	wantOutcome(t, p.Plan(), "203.0.113.5", "192.168.10.11:30080", outcome{Action: Unhandled})
}

// That a Node leaves is for load balancers to know. What its clients are served stays.
func TestLeavingChangesNothing(t *testing.T) {
	p := NewPlanner(config)
	snap := snapshot(service(), slice(endpoint("10.244.1.1", "node-a", "rs")))
	p.Update(model.Delta(*snap))
	left := *snap.Nodes["node-a"]
	left.Leaving = true
	if c := p.Update(model.Delta{Nodes: map[string]*model.Node{"node-a": &left}}); !c.Empty() {
		t.Errorf("changes %+v, want none", c)
	}
}
