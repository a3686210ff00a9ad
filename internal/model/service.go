package model

import (
	"net/netip"
	"time"
)

// ServiceType is the type of a Service.
type ServiceType string

// The types, by their API names.
const (
	ClusterIP    ServiceType = "ClusterIP"
	NodePort     ServiceType = "NodePort"
	LoadBalancer ServiceType = "LoadBalancer"
	ExternalName ServiceType = "ExternalName"
)

// TrafficPolicy says which endpoints traffic may reach. The zero value is PolicyCluster.
type TrafficPolicy uint8

const (
	// PolicyCluster allows every endpoint.
	PolicyCluster TrafficPolicy = iota
	// PolicyLocal allows only endpoints on the node that the traffic arrives at.
	PolicyLocal
)

// String is "Cluster" or "Local".
func (p TrafficPolicy) String() string {
	if p == PolicyLocal {
		return "Local"
	}
	return "Cluster"
}

// Balancing is how connections are spread over endpoints. The zero value is BalanceDefault.
type Balancing uint8

const (
	// BalanceDefault leaves it to the mode: at random in modes nftables and iptables, in turn in mode userspace, and what
	// the node's scheduler does in mode ipvs.
	BalanceDefault Balancing = iota
	// BalanceRandom picks an endpoint at random, each as likely as its weight says.
	BalanceRandom
	// BalanceRoundRobin takes the endpoints in turn, each as often as its weight says.
	BalanceRoundRobin
	// BalanceLeastConnections takes the endpoint with the fewest open connections for its weight. Modes that do not see
	// connections end pick at random.
	BalanceLeastConnections
)

// String is the value of the annotation that chooses it, and "default" where there is none.
func (b Balancing) String() string {
	return [...]string{"default", "random", "round-robin", "least-connections"}[b]
}

// ProxyProtocol is the version of the PROXY protocol by which a proxy tells an endpoint its client's address. 0: it does
// not.
type ProxyProtocol uint8

// String is the value of the annotation that asks for it: v1 or v2.
func (p ProxyProtocol) String() string { return "v" + string('0'+byte(p)) }

// Service is a Service with the API's defaults filled in. Values that are wrong are left out here and reported by
// the source that read them.
type Service struct {
	Name Name
	Type ServiceType
	// Created decides between Services that claim the same address: the older one has it. Zero sorts after every time.
	Created time.Time

	// Headless is a Service without a ClusterIP by its own wish (clusterIP: None). It is not proxied.
	Headless bool
	// OtherProxy is a Service that names another proxy (label service.kubernetes.io/service-proxy-name, any value).
	OtherProxy bool
	// HeadlessLabel is a Service with the label service.kubernetes.io/headless (any value). It is not proxied.
	HeadlessLabel bool

	ClusterIPs  []netip.Addr // at most one of each family
	ExternalIPs []netip.Addr
	// LoadBalancerIPs are the load balancer's addresses that this node has to handle (ipMode VIP).
	LoadBalancerIPs []netip.Addr
	// ProxyLoadBalancerIPs are those that the load balancer handles itself (ipMode Proxy); kept to explain.
	ProxyLoadBalancerIPs []netip.Addr
	// SourceRanges are the sources allowed to use the load balancer's addresses; none means all.
	SourceRanges []netip.Prefix

	InternalPolicy TrafficPolicy
	ExternalPolicy TrafficPolicy
	// HealthCheckNodePort is 0 when there is none.
	HealthCheckNodePort uint16
	// Affinity is how long a client keeps its endpoint, in whole seconds; 0 is no affinity.
	Affinity  time.Duration
	Balancing Balancing
	// Scheduler is the kernel's name of a scheduler for mode ipvs. Empty: what Balancing and the node say.
	Scheduler string
	// ProxyProtocol is spoken to the endpoints where connections end at a proxy, which is mode userspace.
	ProxyProtocol ProxyProtocol
	// Weights are asked in order; see [Service.WeightOf].
	Weights []Weight

	Ports []ServicePort
}

// ServicePort is one port of a Service.
type ServicePort struct {
	Name     string // empty only for the sole port of a Service
	Protocol Protocol
	Port     uint16
	NodePort uint16 // 0: none
}

// Slice is an EndpointSlice: endpoints of one family that share their ports. Legacy Endpoints and Pods matched by a
// selector become Slices too.
type Slice struct {
	Name    Name
	Service Name // the Service it belongs to
	Family  Family
	Ports   []SlicePort
	// Endpoints keep the order of the object.
	Endpoints []Endpoint
}

// SlicePort is one port of a Slice. A Slice port without a number is left out by the source.
type SlicePort struct {
	Name     string
	Protocol Protocol
	Port     uint16
}

// Endpoint is one endpoint of a Slice.
type Endpoint struct {
	Address netip.Addr
	Node    string // empty: unknown, so never local
	Pod     string // name of the Pod behind it, where known; for messages

	Ready       bool
	Serving     bool
	Terminating bool

	// Hints are nil where there are none. Endpoints share those that are alike.
	Hints *Hints
}

// Hints name the zones and nodes that should prefer an endpoint.
type Hints struct {
	Zones, Nodes []string
}

// ZoneHints are the zones that should prefer this endpoint.
func (e *Endpoint) ZoneHints() []string {
	if e.Hints == nil {
		return nil
	}
	return e.Hints.Zones
}

// NodeHints are the nodes that should prefer this endpoint.
func (e *Endpoint) NodeHints() []string {
	if e.Hints == nil {
		return nil
	}
	return e.Hints.Nodes
}

// Node is a node of the cluster.
type Node struct {
	Name string
	Zone string // label topology.kubernetes.io/zone
	// InternalIPs and ExternalIPs keep the order of the object.
	InternalIPs []netip.Addr
	ExternalIPs []netip.Addr
	PodCIDRs    []netip.Prefix
	// Leaving is set while the object is being deleted, or the cluster autoscaler is about to delete the machine: load
	// balancers should send it no new clients. What it serves stays as it is.
	Leaving bool
}

// ServiceCIDR is an object that names ranges of addresses from which the cluster allocates cluster IPs.
type ServiceCIDR struct {
	Name     string
	Prefixes []netip.Prefix
}
