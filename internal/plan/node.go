package plan

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
)

// Node is what the plan knows of this node.
type Node struct {
	// Name is that of the Node object, or the name configured where there is no such object.
	Name string
	// Missing is set where a Node was named, or there are others, and none has this name.
	Missing bool
	Zone    string
	// Primary is the node's own address, by family.
	Primary [2]netip.Addr
	// Addresses are those on its interfaces, sorted.
	Addresses     []netip.Addr
	Detect        [2]Detector
	NodePorts     [2]NodePorts
	MasqueradeAll bool

	// ServiceCIDRs are all ranges of cluster IPs by family: sorted, and none within another.
	ServiceCIDRs [2][]netip.Prefix
	// GuardClusterIPs is [Config.GuardClusterIPs].
	GuardClusterIPs bool
	// GuardAddresses is [Config.GuardAddresses].
	GuardAddresses bool
	// AnswerPing is [Config.AnswerPing].
	AnswerPing bool
}

// IsLocal reports whether addr is one of this node's, loopback included.
func (n *Node) IsLocal(addr netip.Addr) bool {
	_, found := slices.BinarySearchFunc(n.Addresses, addr, netip.Addr.Compare)
	return found || addr.IsLoopback()
}

func newNode(cfg Config, host Host, s *model.Snapshot) Node {
	nodes := s.Nodes
	name := nodeName(cfg, nodes)
	object := nodes[name]
	n := Node{
		Name: name, MasqueradeAll: cfg.MasqueradeAll, Primary: primary(cfg, object, host),
		ServiceCIDRs: serviceCIDRs(s.ServiceCIDRs), GuardClusterIPs: cfg.GuardClusterIPs, GuardAddresses: cfg.GuardAddresses, AnswerPing: cfg.AnswerPing,
	}
	n.Missing = object == nil && (cfg.NodeName != "" || len(nodes) > 0)
	if object != nil {
		n.Zone = object.Zone
	}
	n.Addresses = addresses(n, object, host)
	n.Detect = detectors(cfg, object)
	for _, f := range model.Families {
		n.NodePorts[f] = nodePorts(cfg, f, &n)
	}
	return n
}

func nodeName(cfg Config, nodes map[string]*model.Node) string {
	if cfg.NodeName != "" {
		return cfg.NodeName
	}
	if _, ok := nodes[cfg.Hostname]; !ok && len(nodes) == 1 {
		for name := range nodes {
			return name
		}
	}
	return cfg.Hostname
}

// primary is the first address of each family: what is configured comes before the Node's, and the host's stand in for
// want of both.
func primary(cfg Config, object *model.Node, host Host) [2]netip.Addr {
	if object == nil {
		object = &model.Node{}
	}
	var first [2]netip.Addr
	for _, a := range slices.Concat([]netip.Addr{cfg.NodeIP}, object.InternalIPs, object.ExternalIPs, host.Primary[:]) {
		if a.IsValid() && !first[model.FamilyOf(a)].IsValid() {
			first[model.FamilyOf(a)] = a
		}
	}
	return first
}

// addresses are the host's. Where they are unknown, a Node's internal and primary ones are as good as can be had;
// external ones are often not on any interface.
func addresses(n Node, object *model.Node, host Host) []netip.Addr {
	all := slices.Clone(host.Addresses)
	if len(all) == 0 {
		all = slices.Clone(n.Primary[:])
		if object != nil {
			all = append(all, object.InternalIPs...)
		}
	}
	all = slices.DeleteFunc(all, func(a netip.Addr) bool { return !a.IsValid() })
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}
