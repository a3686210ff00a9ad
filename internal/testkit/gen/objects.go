package gen

import (
	"fmt"
	"net/netip"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/model"
)

// Snapshot draws nodes and a few Services with their endpoints.
func Snapshot(t *rapid.T) *model.Snapshot {
	s := model.NewSnapshot()
	s.Nodes = Nodes(t)
	s.ServiceCIDRs = ServiceCIDRs(t)
	for range rapid.IntRange(1, 5).Draw(t, "services") {
		name := serviceName(t)
		s.Services[name] = Service(t, name)
		for i := range rapid.IntRange(0, 2).Draw(t, "slices") {
			sl := Slice(t, name, i)
			s.Slices[sl.Name] = sl
		}
	}
	return s
}

// Delta draws a change of one object.
func Delta(t *rapid.T) model.Delta {
	d := model.Delta(*model.NewSnapshot())
	name := serviceName(t)
	gone := rapid.IntRange(0, 3).Draw(t, "gone") == 0
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		if d.Nodes = Nodes(t); gone {
			d.Nodes, d.ServiceCIDRs = nil, ServiceCIDRs(t)
		}
	case 1, 2, 3:
		if d.Services[name] = nil; !gone {
			d.Services[name] = Service(t, name)
		}
	default:
		sl := Slice(t, name, rapid.IntRange(0, 1).Draw(t, "slice"))
		if d.Slices[sl.Name] = sl; gone {
			d.Slices[sl.Name] = nil
		}
	}
	return d
}

func serviceName(t *rapid.T) model.Name {
	return model.Name{Namespace: "ns", Name: rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "name")}
}

// Service draws a Service of any kind.
func Service(t *rapid.T, name model.Name) *model.Service {
	policy := rapid.SampledFrom([]model.TrafficPolicy{model.PolicyCluster, model.PolicyLocal})
	s := &model.Service{
		Name: name, Created: time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0),
		Type:           rapid.SampledFrom([]model.ServiceType{model.ClusterIP, model.NodePort, model.LoadBalancer}).Draw(t, "type"),
		InternalPolicy: policy.Draw(t, "internal"), ExternalPolicy: policy.Draw(t, "external"),
		Balancing: rapid.SampledFrom([]model.Balancing{model.BalanceRandom, model.BalanceRandom, model.BalanceRoundRobin}).Draw(t, "balancing"),
	}
	if rapid.IntRange(0, 3).Draw(t, "affinity") == 0 {
		s.Affinity = 10800 * time.Second
	}
	if rapid.IntRange(0, 2).Draw(t, "weighted") == 0 {
		s.Weights = rapid.SliceOfN(rapid.Custom(weight), 1, 3).Draw(t, "weights")
	}
	addresses(t, s)
	sources(t, s)
	for i := range rapid.IntRange(1, 2).Draw(t, "ports") {
		s.Ports = append(s.Ports, servicePort(t, s, i))
	}
	if s.Type == model.LoadBalancer && s.ExternalPolicy == model.PolicyLocal {
		s.HealthCheckNodePort = rapid.SampledFrom([]uint16{0, 30001, 32000}).Draw(t, "healthCheck")
	}
	return s
}

func addresses(t *rapid.T, s *model.Service) {
	w := pools()
	for _, f := range rapid.SampledFrom([][]model.Family{{model.IPv4}, {model.IPv6}, {model.IPv4, model.IPv6}}).Draw(t, "families") {
		s.ClusterIPs = append(s.ClusterIPs, pick(t, w.clusterIPs, f, "clusterIP"))
		if rapid.IntRange(0, 2).Draw(t, "external") == 0 {
			s.ExternalIPs = append(s.ExternalIPs, pick(t, w.publicIPs, f, "externalIP"))
		}
		if s.Type == model.LoadBalancer {
			s.LoadBalancerIPs = append(s.LoadBalancerIPs, pick(t, w.publicIPs, f, "loadBalancerIP"))
		}
	}
}

func sources(t *rapid.T, s *model.Service) {
	if s.Type == model.LoadBalancer {
		s.SourceRanges = rapid.SampledFrom([][]netip.Prefix{
			nil, nil, prefixes("203.0.113.0/24", "2001:db8:5::/64"), prefixes("192.168.10.0/24", "fd00:10::/64"),
		}).Draw(t, "sources")
	}
}

// weight draws a small weight, since every endpoint has to be met by a handful of connections.
func weight(t *rapid.T) model.Weight {
	w := rapid.SampledFrom([]model.Weight{
		{Node: neighbour},
		{Pod: "new-*"},
		{Pod: "old-1"},
		{Pod: "*"},
		{Address: netip.MustParseAddr(pools().pods[model.IPv4][0])},
		{Address: netip.MustParseAddr(pools().neighbourPods[model.IPv6][0])},
	}).Draw(t, "of")
	w.Value = rapid.SampledFrom([]uint16{1, 2, 3, 4}).Draw(t, "weight")
	return w
}

func servicePort(t *rapid.T, s *model.Service, i int) model.ServicePort {
	p := model.ServicePort{
		Name:     fmt.Sprint("p", i),
		Protocol: rapid.SampledFrom([]model.Protocol{model.TCP, model.TCP, model.UDP, model.SCTP}).Draw(t, "protocol"),
		Port:     rapid.SampledFrom([]uint16{80, 443, 30002}).Draw(t, "port"),
	}
	if s.Type != model.ClusterIP {
		p.NodePort = rapid.SampledFrom([]uint16{0, 30001, 30002, 30003}).Draw(t, "nodePort")
	}
	return p
}

// Slice draws an EndpointSlice of a Service.
func Slice(t *rapid.T, service model.Name, number int) *model.Slice {
	s := &model.Slice{
		Name:    model.Name{Namespace: service.Namespace, Name: fmt.Sprint(service.Name, "-", number)},
		Service: service, Family: rapid.SampledFrom(model.Families[:]).Draw(t, "family"),
	}
	for _, protocol := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
		for i := range 2 {
			s.Ports = append(s.Ports, model.SlicePort{Name: fmt.Sprint("p", i), Protocol: protocol, Port: uint16(8080 + i)})
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, endpoint(t, s.Family))
	}
	return s
}

func endpoint(t *rapid.T, f model.Family) model.Endpoint {
	w := pools()
	e := model.Endpoint{Address: pick(t, w.neighbourPods, f, "remote pod"), Node: neighbour}
	switch rapid.IntRange(0, 5).Draw(t, "place") {
	case 0, 1:
		e.Address, e.Node = pick(t, w.pods, f, "local pod"), Node
	case 2:
		e.Address, e.Node = pick(t, w.node, f, "host network"), Node
	case 3:
		e.Node = ""
	}
	state := rapid.SampledFrom([]model.Endpoint{
		{Ready: true, Serving: true},
		{Ready: true, Serving: true},
		{Serving: true, Terminating: true},
		{Serving: true},
		{},
		{Ready: true, Serving: true, Terminating: true},
	}).Draw(t, "state")
	e.Pod = rapid.SampledFrom([]string{"", "new-1", "new-2", "old-1"}).Draw(t, "pod")
	e.Ready, e.Serving, e.Terminating = state.Ready, state.Serving, state.Terminating
	e.Hints = &model.Hints{
		Zones: rapid.SampledFrom([][]string{nil, {"zone-1"}, {"zone-2"}}).Draw(t, "zoneHints"),
		Nodes: rapid.SampledFrom([][]string{nil, nil, {Node}, {neighbour}}).Draw(t, "nodeHints"),
	}
	return e
}
