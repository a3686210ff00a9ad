package plan

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
)

// portsOf lists a Service's ports by family: one for each family that it has a ClusterIP of.
func portsOf(s *model.Service) (ids []PortID) {
	if Skipped(s) != "" {
		return nil
	}
	for _, ip := range s.ClusterIPs {
		for _, p := range s.Ports {
			ids = append(ids, PortID{Service: s.Name, Port: p.Name, Protocol: p.Protocol, Family: model.FamilyOf(ip)})
		}
	}
	return ids
}

// portOf finds the Service's port that id names.
func portOf(s *model.Service, id PortID) model.ServicePort {
	at := slices.IndexFunc(s.Ports, func(p model.ServicePort) bool { return p.Name == id.Port && p.Protocol == id.Protocol })
	return s.Ports[at]
}

// wants lists the frontends that a Service port asks for.
func wants(s *model.Service, id PortID) (fs []Frontend) {
	port := portOf(s, id)
	add := func(kind Kind, addrs []netip.Addr) {
		for _, a := range addrs {
			if model.FamilyOf(a) == id.Family {
				fs = append(fs, Frontend{kind, Key{a, id.Protocol, port.Port}})
			}
		}
	}
	add(ClusterIP, s.ClusterIPs)
	add(ExternalIP, s.ExternalIPs)
	add(LoadBalancerIP, s.LoadBalancerIPs)
	if port.NodePort != 0 {
		fs = append(fs, Frontend{NodePort, NodePortKey(id.Family, id.Protocol, port.NodePort)})
	}
	if id == healthCheckOwner(s, id.Family) {
		fs = append(fs, Frontend{HealthCheckPort, NodePortKey(id.Family, model.TCP, s.HealthCheckNodePort)})
	}
	slices.SortStableFunc(fs, func(a, b Frontend) int { return int(a.Kind) - int(b.Kind) })
	return fs
}

// healthCheckOwner is the port of a Service that stands for its healthCheckNodePort: the first. It is the zero
// PortID where a Service has none: only load balancers that keep to this node's endpoints ask for it.
func healthCheckOwner(s *model.Service, f model.Family) PortID {
	if s.HealthCheckNodePort == 0 || s.Type != model.LoadBalancer || s.ExternalPolicy != model.PolicyLocal {
		return PortID{}
	}
	return PortID{Service: s.Name, Port: s.Ports[0].Name, Protocol: s.Ports[0].Protocol, Family: f}
}

// sources are the clients that the load balancer's addresses answer, for one family. A range of length zero allows
// all, and so does a list without any range of this family. A host that is allowed may come with a load balancer's
// address as its source, once that is on one of its interfaces: so these are allowed too.
func sources(s *model.Service, f model.Family, n *Node) (ps []netip.Prefix) {
	host := false
	for _, p := range s.SourceRanges {
		switch {
		case model.FamilyOf(p.Addr()) != f:
			continue
		case isZero(p):
			return nil
		}
		ps = append(ps, p.Masked())
		host = host || n.Primary[f].IsValid() && p.Contains(n.Primary[f])
	}
	for _, a := range s.LoadBalancerIPs {
		if host && model.FamilyOf(a) == f {
			ps = append(ps, netip.PrefixFrom(a, f.Bits()))
		}
	}
	return ps
}
