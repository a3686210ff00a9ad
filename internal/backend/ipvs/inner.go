package ipvs

import (
	"slices"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// inner is the Ruleset beside the virtual servers. It is of the plan and of frontends that linger: those of Services that
// are gone while their connections are not.
type inner struct {
	backend.Ruleset // nil: nobody asked for one
	plan            *plan.Plan
	lingering       map[plan.PortID]*plan.Port
	// merged is the plan with them, nil while there are none.
	merged *plan.Plan
}

func newInner(p *plan.Plan, rules backend.Backend) inner {
	i := inner{plan: p}
	if rules != nil {
		i.Ruleset = rules.Compile(p)
	}
	return i
}

// mark is the firewall mark of clients outside, 0 if they come by none.
func (i *inner) mark(id plan.PortID) uint32 {
	if d, ok := i.Ruleset.(Delivery); ok {
		if mark, ok := d.Mark(id); ok {
			return mark
		}
	}
	return 0
}

// omitted are the Service ports that have no rules. See [Omitter].
func (i *inner) omitted() map[plan.PortID]bool {
	out := map[plan.PortID]bool{}
	if o, ok := i.Ruleset.(Omitter); ok {
		for _, id := range o.Omitted() {
			out[id] = true
		}
	}
	return out
}

func same(p *plan.Port) *plan.Port { return p }

func (i *inner) update(p *plan.Plan, changes plan.Changes) {
	i.plan = p
	if i.merged != nil {
		changes = i.merged.Follow(p, changes.Node, changes.IDs(), same)
		p = i.merged
	}
	if i.Ruleset != nil {
		i.Update(p, changes)
	}
}

// linger has frontends refused that the plan does not have: these, and no others any more.
func (i *inner) linger(want map[plan.PortID]*plan.Port) {
	if i.merged == nil && len(want) > 0 {
		i.merged = i.plan.Mapped(same)
	}
	var changes plan.Changes
	for id, old := range i.lingering {
		if want[id] == nil {
			delete(i.merged.Ports, id)
			changes.Ports = append(changes.Ports, plan.Change{ID: id, Old: old})
		}
	}
	for id, now := range want {
		if i.lingering[id] == nil {
			i.merged.Ports[id] = now
			changes.Ports = append(changes.Ports, plan.Change{ID: id, New: now})
		}
	}
	i.lingering = want
	if changes.Empty() || i.Ruleset == nil {
		return
	}
	slices.SortFunc(changes.Ports, func(a, b plan.Change) int { return a.ID.Compare(b.ID) })
	i.Update(i.merged, changes)
	if len(want) == 0 {
		i.merged = nil
	}
}

// lingering is a frontend that nobody has any more, as a Service port without endpoints: a cluster IP, so that all other
// ports of the address are guarded, too.
func lingering(s Server) *plan.Port {
	id := lingeringID(s)
	var refuse plan.Access
	for client := range refuse {
		refuse[client] = plan.Route{Action: plan.Reject}
	}
	return &plan.Port{ID: id, Frontends: []plan.Frontend{{Kind: plan.ClusterIP, Key: s.Key}}, Internal: refuse, External: refuse}
}

// lingeringID cannot be a Service's: there is no namespace of this name.
func lingeringID(s Server) plan.PortID {
	return plan.PortID{
		Service: model.Name{Namespace: "", Name: "draining"}, Port: s.Key.String(), Protocol: s.Protocol, Family: model.FamilyOf(s.Addr),
	}
}
