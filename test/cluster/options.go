package cluster

import (
	"fmt"
	"net/netip"
	"time"

	"sluice/internal/lab"
)

// The cluster's ranges. Each node has a /24 and a /64 of the pods' ranges.
const (
	// ServiceRanges are those of ClusterIPs.
	ServiceRanges = "10.96.0.0/16,fd00:96::/112"
	// PodRanges are those of all pods, which kube-proxy calls clusterCIDR.
	PodRanges = "10.244.0.0/16,fd00:244::/48"
	// ExternalRanges are for load balancers and externalIPs: the network hands them to the first node until
	// [Cluster.Announce] moves them.
	ExternalRanges = "192.0.2.0/24,2001:db8:1b::/64"
)

// apiAddress is where kube-apiserver is, on a machine of its own beside the nodes.
const (
	apiAddress  = "192.168.10.2"
	apiAddress6 = "fd00:10::2"
	apiPort     = "6443"
)

// Options are what a test may choose of its cluster.
type Options struct {
	// Nodes are the machines that pods run on; none stands for node-a and node-b, each in a zone of its own.
	Nodes []NodeSpec
	// Linger is how long a pod still serves after its deletion, as far as its grace period allows; 0 is one second.
	Linger time.Duration
	// APIServerFlags are added to those of kube-apiserver, and ControllerFlags to those of kube-controller-manager.
	APIServerFlags, ControllerFlags []string
	// AuditLog makes kube-apiserver write down the metadata of every request, in audit.log in the logs' folder.
	AuditLog bool
}

// NodeSpec is a node to make.
type NodeSpec struct {
	Name string
	// Zone is its label topology.kubernetes.io/zone; empty: none.
	Zone string
	// Labels are further ones.
	Labels map[string]string
}

func (o Options) nodes() []NodeSpec {
	if len(o.Nodes) == 0 {
		return []NodeSpec{{Name: "node-a", Zone: "zone-a"}, {Name: "node-b", Zone: "zone-b"}}
	}
	return o.Nodes
}

func (o Options) linger() time.Duration {
	if o.Linger == 0 {
		return time.Second
	}
	return o.Linger
}

// site is the i-th node in the lab. The pods of a node share one namespace, in which each has its address.
func site(i int, n NodeSpec) lab.Site {
	pods := podRanges(i)
	return lab.Site{
		Node: lab.Machine{Name: n.Name, Addresses: addresses(fmt.Sprintf("192.168.10.%d", 11+i), fmt.Sprintf("fd00:10::%d", 11+i))},
		Pods: []lab.Machine{{
			Name: podsOf(n.Name), AnyIP: pods,
			Addresses: addresses(fmt.Sprintf("10.244.%d.254", 1+i), fmt.Sprintf("fd00:244:0:%d::fffe", 1+i)),
		}},
	}
}

// podRanges are the podCIDRs of the i-th node.
func podRanges(i int) []netip.Prefix {
	return prefixes(fmt.Sprintf("10.244.%d.0/24,fd00:244:0:%d::/64", 1+i, 1+i))
}

// podsOf is the name of the machine where a node's pods are.
func podsOf(node string) string { return "pods-of-" + node }

// topology is the whole lab: nodes with their pods, the machine "control" and the outside clients in "clients".
func (o Options) topology() lab.Topology {
	t := lab.Topology{
		Outside: []lab.Machine{
			{Name: "control", Addresses: addresses(apiAddress, apiAddress6)},
			{Name: "clients", Addresses: addresses("203.0.113.254", "2001:db8:77::fffe"), AnyIP: prefixes("203.0.113.0/24,2001:db8:77::/64")},
		},
		ToNode: prefixes(ServiceRanges + "," + ExternalRanges),
	}
	for i, n := range o.nodes() {
		s := site(i, n)
		if i == 0 {
			t.Node, t.Pods = s.Node, s.Pods
			continue
		}
		t.Further = append(t.Further, s)
	}
	return t
}
