package plan

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
)

// Guard is why a new connection that is for no frontend is refused all the same; see [Config.GuardClusterIPs].
type Guard uint8

// The guards.
const (
	Unguarded Guard = iota
	// GuardPort: the address is a cluster IP, and nobody has this port of this protocol there. It is rejected.
	GuardPort
	// GuardRange: the address is in a ServiceCIDR, and no Service has it. It is dropped.
	GuardRange
)

func (g Guard) action() Action {
	return [...]Action{Unguarded: Unhandled, GuardPort: Reject, GuardRange: Drop}[g]
}

// guard decides on an address where nobody has the port. One that is this node's may be in use by something else than
// a Service, unless it is a cluster IP.
func (p *Plan) guard(pkt Packet) Guard {
	to := pkt.To.Addr()
	use := p.known[to]
	switch {
	case !p.Node.GuardClusterIPs, p.Node.GuardAddresses && use.frontends > 0 && p.isHealthCheck(pkt):
		return Unguarded
	case use.clusterIPs > 0, p.Node.GuardAddresses && use.frontends > 0 && !p.Node.IsLocal(to):
		return GuardPort
	case use.frontends == 0 && !p.Node.IsLocal(to) && p.Node.inServiceCIDR(to):
		return GuardRange
	}
	return Unguarded
}

// isHealthCheck reports whether a packet is for a health check node port.
func (p *Plan) isHealthCheck(pkt Packet) bool {
	_, f, ok := p.Owner(NodePortKey(model.FamilyOf(pkt.To.Addr()), pkt.Protocol, pkt.To.Port()))
	return ok && f.Kind == HealthCheckPort
}

func (n *Node) inServiceCIDR(a netip.Addr) bool {
	return slices.ContainsFunc(n.ServiceCIDRs[model.FamilyOf(a)], func(p netip.Prefix) bool { return p.Contains(a) })
}

// known counts the wishes for each address, so that it stays known until the last Service that wants it goes.
type known map[netip.Addr]use

type use struct {
	clusterIPs int32 // as cluster IP
	frontends  int32 // as anything
}

func (k known) add(f Frontend) { k.count(f, 1) }

func (k known) remove(f Frontend) { k.count(f, -1) }

func (k known) count(f Frontend, by int32) {
	if f.Addr.IsUnspecified() {
		return // a port of the node
	}
	u := k[f.Addr]
	u.frontends += by
	if f.Kind == ClusterIP {
		u.clusterIPs += by
	}
	if k[f.Addr] = u; u.frontends == 0 {
		delete(k, f.Addr)
	}
}

// serviceCIDRs is the union of all objects' ranges, by family.
func serviceCIDRs(objects map[string]*model.ServiceCIDR) (ranges [2][]netip.Prefix) {
	for _, o := range objects {
		for _, p := range o.Prefixes {
			f := model.FamilyOf(p.Addr())
			ranges[f] = append(ranges[f], p.Masked())
		}
	}
	for f, ps := range ranges {
		ranges[f] = WithoutContained(ps)
	}
	return ranges
}

// WithoutContained are masked ranges, sorted, without those that lie within another.
func WithoutContained(ps []netip.Prefix) []netip.Prefix {
	sorted := slices.SortedFunc(slices.Values(ps), netip.Prefix.Compare)
	kept := sorted[:0]
	for _, p := range sorted {
		// Whatever sorts between a range and one inside it lies inside it too, and is gone by now.
		if len(kept) == 0 || !kept[len(kept)-1].Overlaps(p) {
			kept = append(kept, p)
		}
	}
	return kept
}
