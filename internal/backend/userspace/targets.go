package userspace

import (
	"errors"
	"net/netip"
	"slices"

	"sluice/internal/plan"
	"sluice/internal/relay"
)

// keysOf are the lists of a Service port.
func keysOf(id plan.PortID) [2]relay.Key {
	return [...]relay.Key{{Port: id, List: plan.ListCluster}, {Port: id, List: plan.ListLocal}}
}

// target is what the proxy has to do for one list of a Service port.
func target(p *plan.Port, k relay.Key, number uint16) relay.Target {
	return relay.Target{
		Key: k, Listen: netip.AddrPortFrom(p.ID.Family.Unspecified(), number), Endpoints: p.Endpoints(k.List),
		Draining: draining(p, k.List), Balancing: p.Balancing, Affinity: p.Affinity, ProxyProtocol: uint8(p.ProxyProtocol),
	}
}

// draining are endpoints that keep the sessions that they have by a list and get no new ones: all others of the Service
// port, or those on this node where only such may have any.
func draining(p *plan.Port, l plan.List) (es []plan.Endpoint) {
	others := [...]plan.List{plan.ListCluster: plan.ListLocal, plan.ListLocal: plan.ListCluster}
	for _, e := range slices.Concat(p.Endpoints(others[l]), p.Draining) {
		if l == plan.ListCluster || e.Local {
			es = append(es, e)
		}
	}
	return es
}

// addrPort is not valid for number 0.
func addrPort(ip netip.Addr, number uint16) netip.AddrPort {
	if number == 0 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ip, number)
}

// retry tries those again that the proxy could not serve, but for those that are to wait.
func (r *Ruleset) retry(wait map[plan.PortID]bool) {
	var ids []plan.PortID
	for id := range r.refused {
		if !wait[id] {
			delete(r.unbound, id)
			ids = append(ids, id)
		}
	}
	r.remap(false, ids)
}

// elsewhere is for a list that the proxy cannot listen for where it should: the list gets another port if its own is
// somebody else's, or is not served for now.
func (r *Ruleset) elsewhere(k relay.Key, why error) {
	var bind *relay.BindError
	if errors.As(why, &bind) && bind.InUse() {
		r.ports.occupied(k)
	} else {
		r.unbound[k.Port] = why
	}
}

func (r *Ruleset) aim(t relay.Target) {
	r.targets[t.Key] = t
	r.pending[t.Key] = true
}

// forget is for a Service port that is gone, or not proxied.
func (r *Ruleset) forget(id plan.PortID) {
	delete(r.refused, id)
	for _, k := range keysOf(id) {
		r.release(k)
	}
}

func (r *Ruleset) release(k relay.Key) {
	r.ports.release(k)
	if _, ok := r.targets[k]; ok {
		delete(r.targets, k)
		r.pending[k] = true
	}
}
