package nftables

import (
	"fmt"
	"net/netip"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// rig is a plan that changes, and the Ruleset that follows it.
type rig struct {
	testing.TB
	opts    Options
	planner *plan.Planner
	rules   *Ruleset
}

// testConfig is for the lab's reference cluster.
func testConfig() plan.Config {
	return plan.Config{
		NodeName: "node-a", GuardClusterIPs: true,
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/56")},
	}
}

func newRig(t testing.TB, deltas ...model.Delta) *rig {
	t.Helper()
	return newRigWith(t, DefaultOptions(), deltas...)
}

func newRigWith(t testing.TB, opts Options, deltas ...model.Delta) *rig {
	t.Helper()
	return newRigAs(t, testConfig(), opts, deltas...)
}

func newRigAs(t testing.TB, cfg plan.Config, opts Options, deltas ...model.Delta) *rig {
	t.Helper()
	w := &rig{TB: t, opts: opts, planner: plan.NewPlanner(cfg)}
	w.planner.SetHost(plan.Host{Addresses: []netip.Addr{
		netip.MustParseAddr("192.168.10.11"), netip.MustParseAddr("fd00:10::11"),
	}})
	w.planner.Update(model.Delta{Nodes: map[string]*model.Node{"node-a": {
		Name: "node-a", InternalIPs: []netip.Addr{netip.MustParseAddr("192.168.10.11"), netip.MustParseAddr("fd00:10::11")},
	}}})
	for _, d := range deltas {
		w.planner.Update(d)
	}
	w.rules = Compile(w.planner.Plan(), opts)
	return w
}

// change brings the Ruleset up to date after a change of the objects.
func (w *rig) change(d model.Delta) {
	changes := w.planner.Update(d)
	w.rules.Update(w.planner.Plan(), changes)
}

// restarted is the rig as a new process sees it.
func (w *rig) restarted() *rig {
	return &rig{TB: w.TB, opts: w.opts, planner: w.planner, rules: Compile(w.planner.Plan(), w.opts)}
}

func serviceName(i int) model.Name {
	return model.Name{Namespace: "default", Name: fmt.Sprint("service-", i)}
}

func clusterIP(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}) }

// service is Service number i with TCP port 80 and endpoints on node-a (10.244.1.*) at port 8080.
func service(i int, endpoints ...byte) model.Delta {
	var ends []netip.Addr
	for _, e := range endpoints {
		ends = append(ends, netip.AddrFrom4([4]byte{10, 244, 1, e}))
	}
	return serviceWith(i, ends, nil)
}

func serviceWith(i int, endpoints []netip.Addr, edit func(*model.Service)) model.Delta {
	s := &model.Service{
		Name: serviceName(i), Type: model.ClusterIP, ClusterIPs: []netip.Addr{clusterIP(i)},
		Ports: []model.ServicePort{{Name: "http", Protocol: model.TCP, Port: 80}},
	}
	if edit != nil {
		edit(s)
	}
	sl := &model.Slice{
		Name: serviceName(i), Service: serviceName(i), Family: model.IPv4,
		Ports: []model.SlicePort{{Name: "http", Protocol: model.TCP, Port: 8080}},
	}
	for _, a := range endpoints {
		sl.Endpoints = append(sl.Endpoints, model.Endpoint{Address: a, Node: "node-a", Ready: true, Serving: true})
	}
	return model.Delta{Services: map[model.Name]*model.Service{s.Name: s}, Slices: map[model.Name]*model.Slice{sl.Name: sl}}
}

// gone takes Service number i away.
func gone(i int) model.Delta {
	return model.Delta{
		Services: map[model.Name]*model.Service{serviceName(i): nil}, Slices: map[model.Name]*model.Slice{serviceName(i): nil},
	}
}

// portID is that of Service number i.
func portID(i int) plan.PortID {
	return plan.PortID{Service: serviceName(i), Port: "http", Protocol: model.TCP}
}
