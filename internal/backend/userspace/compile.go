package userspace

import (
	"cmp"
	"net/netip"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

// Ruleset is what a Plan is in this mode: the inner mode's Ruleset, which leads to the proxy, and the proxy's targets.
type Ruleset struct {
	plan   *plan.Plan
	mapped *plan.Plan
	inner  backend.Ruleset
	ports  *ports
	nodeIP [2]netip.Addr

	targets map[relay.Key]relay.Target
	// refused are the Service ports that are not proxied, unbound those that the proxy could not listen for when it last
	// tried.
	refused, unbound map[plan.PortID]error
	// pending are the lists whose targets may be others than when the proxy was last told of them.
	pending map[relay.Key]bool
	// moved is what changed in the mapped plan since Leads was called.
	moved []plan.Change
}

// Compile turns a plan into a Ruleset over the inner mode's, which compile makes of the mapped plan.
func Compile(p *plan.Plan, opts Options, compile func(*plan.Plan) backend.Ruleset) *Ruleset {
	r := &Ruleset{
		plan: p, nodeIP: nodeIPs(&p.Node),
		targets: map[relay.Key]relay.Target{}, refused: map[plan.PortID]error{}, unbound: map[plan.PortID]error{},
		pending: map[relay.Key]bool{},
	}
	r.ports = newPorts(opts, r.reserved)
	for _, port := range p.Sorted() { // so that who has which port depends on the plan alone
		_, _ = r.number(port) // mapPort asks again, and tells
	}
	r.mapped = p.Mapped(r.mapPort)
	r.inner = compile(r.mapped)
	return r
}

// Update brings it up to date with the Plan after changes. What costs the inner mode anything is a Service port whose
// frontends or policies changed, or that got its first endpoint or lost the last: others change in the proxy alone.
func (r *Ruleset) Update(p *plan.Plan, changes plan.Changes) {
	r.plan = p
	ids := changes.IDs()
	for _, c := range changes.Ports {
		delete(r.unbound, c.ID)
		if c.New == nil {
			r.forget(c.ID)
			continue
		}
		ids = append(ids, r.evict(c.New)...)
	}
	if now := nodeIPs(&p.Node); now != r.nodeIP {
		r.nodeIP = now
		for id := range p.Ports {
			ids = append(ids, id)
		}
	}
	r.remap(changes.Node, ids)
}

// Leads tells where connections are led: to the endpoints of another plan, and what changed in that since the last call.
// See [backend.Leader].
func (r *Ruleset) Leads() (*plan.Plan, plan.Changes) {
	moved := r.moved
	r.moved = nil
	return r.mapped, plan.Changes{Ports: moved}
}

// remap has the inner mode follow what became of some Service ports.
func (r *Ruleset) remap(node bool, ids []plan.PortID) {
	changes := r.mapped.Follow(r.plan, node, ids, r.mapPort)
	r.moved = append(r.moved, changes.Ports...)
	if !changes.Empty() {
		r.inner.Update(r.mapped, changes)
	}
}

// mapPort makes the inner mode's Service port, and the targets of the proxy.
func (r *Ruleset) mapPort(p *plan.Port) *plan.Port {
	at, err := r.number(p)
	if err != nil {
		r.forget(p.ID)
		r.refused[p.ID] = &backend.Declined{By: "the proxy", Err: err}
		return refusing(p)
	}
	delete(r.refused, p.ID)
	for i, k := range keysOf(p.ID) {
		if at[i] == 0 {
			r.release(k)
		} else {
			r.aim(target(p, k, at[i]))
		}
	}
	ip := r.nodeIP[p.ID.Family]
	return throughProxy(p, addrPort(ip, at[0]), addrPort(ip, at[1]))
}

// number gives each list that clients are sent to its port, in the order of keysOf; 0 to the others.
func (r *Ruleset) number(p *plan.Port) (at [2]uint16, err error) {
	for i, k := range keysOf(p.ID) {
		if !p.Uses(k.List) {
			continue
		}
		if err := cmp.Or(refusal(p.ID, r.nodeIP[p.ID.Family]), r.unbound[p.ID]); err != nil {
			return at, err
		}
		if at[i], err = r.ports.take(k); err != nil {
			return at, err
		}
	}
	return at, nil
}

func nodeIPs(n *plan.Node) (ips [2]netip.Addr) {
	for _, f := range model.Families {
		ips[f] = nodeIP(n, f)
	}
	return ips
}
