package plan

import (
	"net/netip"
	"slices"
)

// equal reports whether two plans of a Service port are the same. reflect.DeepEqual would say it too, at the cost of
// all else that an update does.
func (p *Port) equal(o *Port) bool {
	return p.ID == o.ID &&
		p.Internal == o.Internal && p.External == o.External &&
		p.Affinity == o.Affinity && p.Balancing == o.Balancing &&
		p.Scheduler == o.Scheduler && p.ProxyProtocol == o.ProxyProtocol &&
		slices.Equal(p.Frontends, o.Frontends) && slices.Equal(p.Lost, o.Lost) &&
		slices.Equal(p.Cluster, o.Cluster) && slices.Equal(p.Local, o.Local) && slices.Equal(p.Draining, o.Draining) &&
		(p.Sources == nil) == (o.Sources == nil) && slices.Equal(p.Sources, o.Sources) &&
		p.HealthCheck.equal(o.HealthCheck)
}

func (h *HealthCheck) equal(o *HealthCheck) bool {
	return h == o || h != nil && o != nil && *h == *o
}

func (n *Node) equal(o *Node) bool {
	return n.decisive() == o.decisive() &&
		n.Missing == o.Missing && n.GuardClusterIPs == o.GuardClusterIPs && n.GuardAddresses == o.GuardAddresses && n.AnswerPing == o.AnswerPing &&
		slices.Equal(n.Addresses, o.Addresses) &&
		n.NodePorts[0].equal(&o.NodePorts[0]) && n.NodePorts[1].equal(&o.NodePorts[1]) &&
		slices.Equal(n.ServiceCIDRs[0], o.ServiceCIDRs[0]) && slices.Equal(n.ServiceCIDRs[1], o.ServiceCIDRs[1])
}

func (n *NodePorts) equal(o *NodePorts) bool {
	return n.All == o.All && n.Loopback == o.Loopback && n.Proxied == o.Proxied && n.Unlisted == o.Unlisted && slices.Equal(n.Addresses, o.Addresses)
}

// decisive is the part of a Node that Ports depend on.
type decisive struct {
	name, zone    string
	primary       [2]netip.Addr
	detect        [2]Detector
	masqueradeAll bool
}

func (n *Node) decisive() decisive {
	return decisive{n.Name, n.Zone, n.Primary, n.Detect, n.MasqueradeAll}
}
