package plan

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
)

// portID is the ID of a Service's port number i.
func portID(s *model.Service, i int, f model.Family) PortID {
	return PortID{Service: s.Name, Port: s.Ports[i].Name, Protocol: s.Ports[i].Protocol, Family: f}
}

// appendPorts adds the ports of a Service that are in the plan: all of them, in each family that it has a ClusterIP
// of. A nil Service has none.
func appendPorts(ids []PortID, s *model.Service) []PortID {
	if s == nil || Skipped(s) != "" {
		return ids
	}
	for _, ip := range s.ClusterIPs {
		for i := range s.Ports {
			ids = append(ids, portID(s, i, model.FamilyOf(ip)))
		}
	}
	return ids
}

// portNumber finds the port that id names among those of appendPorts; -1 if it is none.
func portNumber(s *model.Service, id PortID) int {
	if s == nil || Skipped(s) != "" {
		return -1
	}
	if !slices.ContainsFunc(s.ClusterIPs, func(a netip.Addr) bool { return model.FamilyOf(a) == id.Family }) {
		return -1
	}
	return slices.IndexFunc(s.Ports, func(p model.ServicePort) bool { return p.Name == id.Port && p.Protocol == id.Protocol })
}

// appendWants adds the frontends that port number i of a Service asks for and may have, by kind.
func (p *Planner) appendWants(fs []Frontend, s *model.Service, i int, f model.Family) []Frontend {
	port := &s.Ports[i]
	fs = appendAddresses(fs, ClusterIP, s.ClusterIPs, port, f)
	if !p.cfg.IgnoreExternalIPs {
		fs = appendAddresses(fs, ExternalIP, s.ExternalIPs, port, f)
	}
	fs = appendAddresses(fs, LoadBalancerIP, s.LoadBalancerIPs, port, f)
	if port.NodePort != 0 {
		fs = append(fs, Frontend{NodePort, NodePortKey(f, port.Protocol, port.NodePort)})
	}
	if i == 0 && wantsHealthCheck(s) {
		fs = append(fs, Frontend{HealthCheckPort, NodePortKey(f, model.TCP, s.HealthCheckNodePort)})
	}
	return fs
}

func appendAddresses(fs []Frontend, kind Kind, addrs []netip.Addr, port *model.ServicePort, f model.Family) []Frontend {
	for _, a := range addrs {
		if model.FamilyOf(a) == f {
			fs = append(fs, Frontend{kind, Key{a, port.Protocol, port.Port}})
		}
	}
	return fs
}

// wantsHealthCheck reports whether a Service is asked for its endpoints on this node, as load balancers do that keep
// to them. The Service's first port stands for all.
func wantsHealthCheck(s *model.Service) bool {
	return s.HealthCheckNodePort != 0 && s.Type == model.LoadBalancer && s.ExternalPolicy == model.PolicyLocal
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
