package sample

import (
	"net/netip"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Service is default/web with port http and a ClusterIP, the first of the addresses. The others are its endpoints, the
// first on node-a and the second on node-b.
func Service(f model.Family, addresses []string) (*model.Service, *model.Slice) {
	name := model.Name{Namespace: "default", Name: "web"}
	s := &model.Service{
		Name: name, Type: model.ClusterIP, ClusterIPs: Addrs(addresses[0]),
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

// Plan is the plan of node-a for one Service. What cfg does not say of the node and of pods is filled in.
func Plan(cfg plan.Config, s *model.Service, sls ...*model.Slice) *plan.Plan {
	snap := model.NewSnapshot()
	snap.Nodes["node-a"] = &model.Node{Name: "node-a", InternalIPs: Addrs("192.168.10.11", "fd00:10::11")}
	snap.Services[s.Name] = s
	for _, sl := range sls {
		snap.Slices[sl.Name] = sl
	}
	cfg.NodeName = "node-a"
	cfg.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/32")}
	return plan.Build(cfg, plan.Host{Addresses: Addrs("192.168.10.11", "fd00:10::11")}, snap)
}

// Addrs are addresses from their text.
func Addrs(texts ...string) (as []netip.Addr) {
	for _, t := range texts {
		as = append(as, netip.MustParseAddr(t))
	}
	return as
}
