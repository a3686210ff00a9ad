package ipsets

import (
	"net/netip"
	"slices"

	"sluice/internal/iptables/sets"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// member is an entry of a set.
type member struct {
	kind kind
	sets.Entry
	mark uint32
}

// compiler is what the entries of one family depend on, besides the Service port.
type compiler struct {
	family model.Family
	node   *plan.Node
	opts   Options
	marks  *marks
}

// portMembers collects the entries of one Service port.
type portMembers struct {
	*compiler
	*plan.Port
	all []member
}

// members are the entries of a Service port, in all sets of its family.
func (c *compiler) members(p *plan.Port) []member {
	m := &portMembers{compiler: c, Port: p}
	for _, f := range p.Frontends {
		if f.Kind == plan.NodePort {
			m.nodePort(f)
		} else {
			m.address(f)
		}
	}
	for _, l := range p.Lost {
		if l.Kind < plan.NodePort {
			m.bound(l.Addr)
		}
	}
	if h := p.HealthCheck; h != nil {
		m.add(healthCheck, sets.Entry{Port: h.Port})
	}
	m.loops()
	return m.all
}

func (m *portMembers) add(k kind, e sets.Entry) { m.all = append(m.all, member{kind: k, Entry: e}) }

// bound enters an address that is on the interface of ipvs. One that the node has anyhow is not, and so keeps what else
// answers there.
func (m *portMembers) bound(a netip.Addr) {
	if !m.node.IsLocal(a) {
		m.add(ipvsIPs, sets.Entry{Addr: a})
	}
}

// address enters a frontend with an address of its own.
func (m *portMembers) address(f plan.Frontend) {
	e := sets.Entry{Addr: f.Addr, Protocol: uint8(f.Protocol), Port: f.Port}
	m.bound(f.Addr)
	switch f.Kind {
	case plan.ClusterIP:
		m.add(clusterIP, e)
	case plan.ExternalIP:
		if m.local() {
			m.add(externalIPLocal, e)
		} else {
			m.add(externalIP, e)
		}
	case plan.LoadBalancerIP:
		m.loadBalancer(e)
	}
	if k, refused := m.refusal(f.Kind); refused {
		m.add(k, e)
	}
	if mark := m.mark(f.Kind); mark != 0 {
		m.all = append(m.all, member{markAddress, e, mark})
	}
}

// local reports whether clients outside keep their addresses: the policy is Local.
func (m *portMembers) local() bool { return !m.External[plan.ClientOutside].Masquerade }

func (m *portMembers) loadBalancer(e sets.Entry) {
	m.add(loadBalancer, e)
	if m.local() {
		m.add(loadBalancerLocal, e)
	}
	if m.Sources == nil {
		return
	}
	m.add(loadBalancerFW, e)
	for _, s := range m.Sources {
		allowed := e
		if allowed.Net = s; m.isOwnAddress(s) {
			m.add(loadBalancerSourceIP, allowed)
		} else {
			m.add(loadBalancerSourceCIDR, allowed)
		}
	}
}

// isOwnAddress reports whether a source is one of the Service's addresses, as the node may have it.
func (m *portMembers) isOwnAddress(s netip.Prefix) bool {
	return s.IsSingleIP() && slices.ContainsFunc(m.Frontends, func(f plan.Frontend) bool {
		return f.Kind == plan.LoadBalancerIP && f.Addr == s.Addr()
	})
}

// nodePort enters a node port.
func (m *portMembers) nodePort(f plan.Frontend) {
	m.addNodePort(nodePort, f, 0)
	if m.local() {
		m.addNodePort(nodePortLocal, f, 0)
	}
	if k, refused := m.refusal(f.Kind); refused {
		m.addNodePort(k+1, f, 0) // the kinds of node ports come behind that of addresses
	}
	if mark := m.mark(f.Kind); mark != 0 {
		m.addNodePort(markNodePort, f, mark)
	}
}

func (m *portMembers) addNodePort(k kind, f plan.Frontend, mark uint32) {
	k = k.ofProtocol(f.Protocol)
	if forms[k].typ == sets.BitmapPort {
		m.all = append(m.all, member{k, sets.Entry{Port: f.Port}, mark})
		return
	}
	for _, a := range m.nodePortAddresses() {
		m.all = append(m.all, member{k, sets.Entry{Addr: a, Protocol: uint8(f.Protocol), Port: f.Port}, mark})
	}
}

// nodePortAddresses are those of this node that accept node ports. Loopback addresses never do: the kernel lets no packet
// from one leave by a virtual server.
func (c *compiler) nodePortAddresses() (as []netip.Addr) {
	if serves := c.node.NodePorts[c.family]; !serves.All {
		return serves.Addresses
	}
	for _, a := range c.node.Addresses {
		if model.FamilyOf(a) == c.family && !a.IsLoopback() {
			as = append(as, a)
		}
	}
	return as
}

// refusal is the kind of set for a frontend that refuses. A plan refuses either everybody or clients outside alone:
// where these have endpoints, so have the others.
//
// Clients outside that need a mark and have none are dropped: the list of the others would lead them to other nodes.
func (m *portMembers) refusal(of plan.Kind) (k kind, refused bool) {
	routes := m.Access(of)
	action := routes[plan.ClientOutside].Action
	if of != plan.ClusterIP && needsMark(m.Port) && m.mark(of) == 0 {
		return outsideDropAddress, true
	}
	all := !slices.ContainsFunc(routes[:], func(r plan.Route) bool { return r.Action != action })
	switch {
	case action == plan.Reject && all:
		return rejectAddress, true
	case action == plan.Reject:
		return outsideRejectAddress, true
	case action == plan.Drop && all:
		return dropAddress, true
	case action == plan.Drop:
		return outsideDropAddress, true
	}
	return 0, false
}

// mark is that of clients outside, if they are led elsewhere than the others; 0: they are not.
func (m *portMembers) mark(k plan.Kind) uint32 {
	if k == plan.ClusterIP {
		return 0
	}
	return m.marks.of[m.ID]
}

// loops enters the endpoints, which must be masqueraded when they connect to themselves.
func (m *portMembers) loops() {
	for _, l := range [...]plan.List{plan.ListCluster, plan.ListLocal} {
		for _, e := range m.Endpoints(l) {
			m.add(loopBack, sets.Entry{
				Addr: e.Addr(), Protocol: uint8(m.ID.Protocol), Port: e.Port(), Net: netip.PrefixFrom(e.Addr(), e.Addr().BitLen()),
			})
		}
	}
}
