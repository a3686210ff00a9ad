package plan

import "net/netip"

// Config is the policy of this node: what an operator chooses, by kube-proxy's flags of the same names.
type Config struct {
	// NodeName is the Node that this machine is. Empty: the Node named Hostname, else the only Node there is.
	NodeName string
	Hostname string

	DetectLocal DetectMode
	// ClusterCIDRs are the pods' ranges, for DetectClusterCIDR; the first of each family counts.
	ClusterCIDRs []netip.Prefix
	// BridgeInterface is the bridge of the pods, for DetectBridgeInterface.
	BridgeInterface string
	// InterfaceNamePrefix begins the names of the pods' interfaces, for DetectInterfaceNamePrefix.
	InterfaceNamePrefix string

	NodePortAddresses NodePortAddresses
	// LocalhostNodePorts serves node ports on 127.0.0.0/8 too, where NodePortAddresses include it. IPv4 only.
	LocalhostNodePorts bool
	// LocalhostProxy leaves node ports at the loopback addresses of both families to a proxy of the daemon, where
	// NodePortAddresses name such addresses themselves.
	LocalhostProxy bool

	// NodeIP takes the place of the Node object's first address of its family. The zero Addr: none does.
	NodeIP netip.Addr
	// IgnoreExternalIPs serves no externalIPs of Services.
	IgnoreExternalIPs bool

	// MasqueradeAll rewrites the source of everything that goes to a ClusterIP.
	MasqueradeAll bool

	// GuardClusterIPs refuses connections to a cluster IP's other ports, and drops those to addresses of a ServiceCIDR
	// that no Service has. kube-proxy does so in its nftables mode alone, so the mode chooses, not the operator.
	GuardClusterIPs bool

	// GuardAddresses refuses connections to other ports of external and load balancer IPs, too, unless the address is on
	// an interface of this node; health check node ports answer at all of them. In mode ipvs all addresses of Services are this
	// node's own, so the mode chooses.
	GuardAddresses bool

	// AnswerPing has cluster IPs answer ICMP echo requests, from this node. In mode ipvs they always do.
	AnswerPing bool
}

// DetectMode is how the traffic of pods is told from other traffic. The zero value is DetectClusterCIDR.
type DetectMode uint8

const (
	// DetectClusterCIDR takes every source in the cluster's pod range for a pod.
	DetectClusterCIDR DetectMode = iota
	// DetectNodeCIDR takes every source in this Node's podCIDRs for a pod.
	DetectNodeCIDR
	// DetectBridgeInterface takes everything that comes in by one bridge for a pod.
	DetectBridgeInterface
	// DetectInterfaceNamePrefix takes everything that comes in by an interface of such a name for a pod.
	DetectInterfaceNamePrefix
)

// String is the value of --detect-local-mode.
func (m DetectMode) String() string {
	switch m {
	case DetectNodeCIDR:
		return "NodeCIDR"
	case DetectBridgeInterface:
		return "BridgeInterface"
	case DetectInterfaceNamePrefix:
		return "InterfaceNamePrefix"
	}
	return "ClusterCIDR"
}

// NodePortAddresses chooses the addresses of the node that accept node ports. The zero value is all of them.
type NodePortAddresses struct {
	All       bool // keyword all
	Primary   bool // keyword primary: the node's first address of each family
	Localhost bool // keyword localhost: 127.0.0.0/8 and ::1
	Prefixes  []netip.Prefix
}

// Host is what the kernel says of this machine.
type Host struct {
	// Addresses are those on its interfaces. None means unknown: then those of the Node object stand for them.
	Addresses []netip.Addr
	// Primary stands for the Node object's first address of each family where there is no Node object.
	Primary [2]netip.Addr
}
