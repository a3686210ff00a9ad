package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sluice/internal/model"
)

// PortID names one port of a Service in one family: the unit of planning, of status and of work.
type PortID struct {
	Service  model.Name
	Port     string // the port's name, often empty
	Protocol model.Protocol
	Family   model.Family
}

// String is kube-proxy's name for a Service port: "namespace/name:port", or "namespace/name" for a port without a
// name. It says neither protocol nor family.
func (id PortID) String() string {
	if id.Port == "" {
		return id.Service.String()
	}
	return id.Service.Namespace + "/" + id.Service.Name + ":" + id.Port
}

// Compare orders Service ports by name, protocol and family.
func (id PortID) Compare(o PortID) int {
	if c := id.Service.Compare(o.Service); c != 0 {
		return c // as a rule; the rest is not worked out in vain
	}
	return cmp.Or(
		strings.Compare(id.Port, o.Port),
		cmp.Compare(id.Protocol, o.Protocol),
		cmp.Compare(id.Family, o.Family),
	)
}

// Port is the plan for one Service port in one family. It is never changed once it is in a Plan.
type Port struct {
	ID PortID
	// Frontends are the addresses at which it answers: by kind, then address.
	Frontends []Frontend
	// Lost are the frontends it wants and another Service port has.
	Lost []Loss

	// Internal is for the ClusterIP, External for all other frontends.
	Internal, External Access
	// Cluster and Local are the endpoints of the two lists that the routes name, sorted by address.
	Cluster, Local []Endpoint
	// Draining are endpoints that get no new connections but still serve those they have: they terminate, or hints
	// keep them for others.
	Draining []Endpoint

	// Sources are the only clients that load balancer addresses answer. Nil is everyone.
	Sources []netip.Prefix

	Affinity  time.Duration // 0: none
	Balancing model.Balancing
	// Scheduler is [model.Service.Scheduler].
	Scheduler string
	// ProxyProtocol is [model.Service.ProxyProtocol].
	ProxyProtocol model.ProxyProtocol

	// HealthCheck is set on one port of a Service that wants to be asked whether this node has endpoints.
	HealthCheck *HealthCheck
}

// Endpoints are those of one list.
func (p *Port) Endpoints(l List) []Endpoint {
	switch l {
	case ListCluster:
		return p.Cluster
	case ListLocal:
		return p.Local
	}
	return nil
}

// Access is how the frontend's clients are routed.
func (p *Port) Access(k Kind) Access {
	if k == ClusterIP {
		return p.Internal
	}
	return p.External
}

// OutsideList is the list that clients outside are sent to where pods and this node have another one. It is not ok where
// they have not, or where no frontend is for clients outside.
func (p *Port) OutsideList() (l List, ok bool) {
	outside := p.External[ClientOutside]
	apart := outside.Action == Forward && outside.List != p.External[ClientHost].List
	return outside.List, apart && slices.ContainsFunc(p.Frontends, func(f Frontend) bool { return f.Kind != ClusterIP })
}

// Allows reports whether frontend f answers a client at src.
func (p *Port) Allows(f Frontend, src netip.Addr) bool {
	if f.Kind != LoadBalancerIP || p.Sources == nil {
		return true
	}
	for _, s := range p.Sources {
		if s.Contains(src) {
			return true
		}
	}
	return false
}

// Endpoint is an address that connections are sent to.
type Endpoint struct {
	netip.AddrPort
	Local bool // on this node
	// Weight is at least 1: an endpoint gets Weight connections for each that one of weight 1 gets. See [Spread].
	Weight uint16
}

// Kind is the kind of a frontend. Its order is that in which one Service's claims to an address count.
type Kind uint8

// The kinds of frontends.
const (
	ClusterIP Kind = iota
	ExternalIP
	LoadBalancerIP
	NodePort
	// HealthCheckPort is no frontend: a port of the node that Sluice itself answers at.
	HealthCheckPort
)

// String is the kind in words.
func (k Kind) String() string {
	return [...]string{"cluster IP", "external IP", "load balancer IP", "node port", "health check node port"}[k]
}

// Frontend is an address, protocol and port that clients connect to.
type Frontend struct {
	Kind Kind
	Key
}

// Key is what tells frontends apart. Of node ports, Addr is the unspecified address of the family.
type Key struct {
	Addr     netip.Addr
	Protocol model.Protocol
	Port     uint16
}

// NodePortKey is the Key of a node port.
func NodePortKey(f model.Family, p model.Protocol, port uint16) Key {
	return Key{f.Unspecified(), p, port}
}

// String is like "10.96.0.10:53/UDP", and "node:30053/UDP" for node ports.
func (k Key) String() string {
	if k.Addr.IsUnspecified() {
		return fmt.Sprintf("node:%d/%s", k.Port, k.Protocol)
	}
	return netip.AddrPortFrom(k.Addr, k.Port).String() + "/" + k.Protocol.String()
}

// Loss is a frontend that another Service port holds.
type Loss struct {
	Frontend
	Winner PortID
}

// HealthCheck is a Service's healthCheckNodePort: an HTTP port that tells load balancers whether to send traffic here.
type HealthCheck struct {
	Port uint16
	// Ready is the number of addresses of ready endpoints on this node, over all ports of the Service.
	Ready int
}
