package iptables

import (
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// section is a part of a shared chain to which each Service port adds its lines.
type section uint8

const (
	natServices      section = iota // nat KUBE-SERVICES
	natNotNodePorts                 // nat KUBE-SERVICES, behind all of the above
	natNodePorts                    // nat KUBE-NODEPORTS
	natPing                         // nat KUBE-CLUSTER-PING
	refuseClusterIPs                // filter KUBE-SERVICES
	refuseAddresses                 // filter KUBE-EXTERNAL-SERVICES
	refuseNodePorts                 // filter KUBE-EXTERNAL-SERVICES, behind all of the above
	refuseSources                   // filter KUBE-PROXY-FIREWALL
	acceptHealth                    // filter KUBE-NODEPORTS
	sections
)

// chainOf is the chain that a section is in.
var chainOf = [sections]string{
	natServices: chainServices, natNotNodePorts: chainServices, natNodePorts: chainNodePorts, natPing: chainPing,
	refuseClusterIPs: chainServices, refuseAddresses: chainExternal, refuseNodePorts: chainExternal,
	refuseSources: chainProxyFirewall, acceptHealth: chainNodePorts,
}

// fragment is what one Service port brings to the tables of its family.
type fragment struct {
	id     plan.PortID
	chains []string // its own, all in nat, in the order in which they are shown
	lines  [sections]string
	// endpoints is how many it sends connections to.
	endpoints int
}

// portCompiler compiles one Service port.
type portCompiler struct {
	*compiler
	*plan.Port
	name     string // as comments have it
	hash     string
	sections [sections]chainText
	chains   []chain
	// endpoints is how many have a chain.
	endpoints int
}

// compile makes a Service port's fragment and the chains that it names.
func (c *compiler) compile(p *plan.Port) (*fragment, []chain) {
	b := &portCompiler{compiler: c, Port: p, name: p.ID.String(), hash: portHash(p.ID)}
	for s := range b.sections {
		b.sections[s].chain = chainOf[s]
	}
	for _, f := range p.Frontends {
		b.frontend(f)
	}
	if h := p.HealthCheck; h != nil {
		b.sections[acceptHealth].add(rule{
			proto: model.TCP, comment: b.name + " health check node port", port: h.Port, target: "ACCEPT",
		})
	}
	b.policyChains()
	f := &fragment{id: p.ID, endpoints: b.endpoints}
	for _, ch := range b.chains {
		f.chains = append(f.chains, ch.name)
	}
	for s := range b.sections {
		f.lines[s] = string(b.sections[s].buf)
	}
	return f, b.chains
}

func (b *portCompiler) frontend(f plan.Frontend) {
	switch {
	case f.Kind == plan.NodePort:
		b.nodePort(f)
		return
	case b.forwardsSome(f.Kind):
		b.sections[natServices].add(rule{
			dst: host(f.Addr), proto: f.Protocol, comment: b.name + " " + words[f.Kind], port: f.Port,
			target: b.entry(f.Kind),
		})
	}
	b.pingRule(f)
	b.refuse(f)
	if b.node.IsLocal(f.Addr) && (!b.forwardsAll(f.Kind) || b.firewalled(f.Kind)) {
		b.sections[natNotNodePorts].add(rule{
			dst: host(f.Addr), proto: f.Protocol, comment: b.name + " is not a node port", port: f.Port, target: "RETURN",
		})
	}
}

// words are the kinds of frontends as kube-proxy's comments have them.
var words = [...]string{plan.ClusterIP: "cluster IP", plan.ExternalIP: "external IP", plan.LoadBalancerIP: "loadbalancer IP"}

// entry is the chain at which connections to a frontend begin.
func (b *portCompiler) entry(k plan.Kind) string {
	switch {
	case k == plan.ClusterIP:
		return b.listChain(b.Internal[plan.ClientOutside].List)
	case b.firewalled(k):
		return prefixFirewall + b.hash
	}
	return prefixExternal + b.hash
}

// listChain is the chain of a list of endpoints.
func (b *portCompiler) listChain(l plan.List) string {
	if l == plan.ListLocal {
		return prefixLocal + b.hash
	}
	return prefixCluster + b.hash
}

// firewalled reports whether a frontend answers only some sources, and those have somewhere to go.
func (b *portCompiler) firewalled(k plan.Kind) bool {
	return k == plan.LoadBalancerIP && b.Sources != nil && b.forwardsSome(k)
}

func (b *portCompiler) forwardsSome(k plan.Kind) bool {
	routes := b.Access(k)
	return slices.ContainsFunc(routes[:], forwards)
}

func (b *portCompiler) forwardsAll(k plan.Kind) bool {
	routes := b.Access(k)
	return !slices.ContainsFunc(routes[:], func(r plan.Route) bool { return !forwards(r) })
}

func forwards(r plan.Route) bool { return r.Action == plan.Forward }

// has reports whether the port answers at an address of one of these kinds.
func (b *portCompiler) has(kinds ...plan.Kind) bool {
	return slices.ContainsFunc(b.Frontends, func(f plan.Frontend) bool { return slices.Contains(kinds, f.Kind) })
}
