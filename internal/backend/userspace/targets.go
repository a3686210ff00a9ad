package userspace

import (
	"errors"
	"net/netip"

	"sluice/internal/plan"
	"sluice/internal/relay"
)

// keysOf are the lists of a Service port.
func keysOf(id plan.PortID) [2]relay.Key {
	return [...]relay.Key{{Port: id, List: plan.ListCluster}, {Port: id, List: plan.ListLocal}}
}

// target is what the proxy has to do for one list of a Service port.
func target(p *plan.Port, k relay.Key, number uint16) relay.Target {
	t := relay.TargetOf(p, k.List)
	t.Listen = netip.AddrPortFrom(p.ID.Family.Unspecified(), number)
	return t
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
