package plan

import (
	"slices"

	"sluice/internal/model"
)

// touched is a frontend that somebody had when another one claimed it, or gave it up.
type touched struct {
	key Key
	had PortID
}

// reclaim brings the claims up to date with the Services of d, before they are in the Snapshot. It adds their ports as
// they were and as they will be, and those of all others who want a frontend that changes hands.
func (p *Planner) reclaim(ids []PortID, d model.Delta) []PortID {
	if len(d.Services) == 0 {
		return ids
	}
	var keys []touched
	for name, s := range d.Services {
		old := p.snap.Services[name]
		keys = p.claim(keys, old, claims.remove, known.remove)
		keys = p.claim(keys, s, claims.add, known.add)
		ids = appendPorts(appendPorts(ids, old), s)
	}
	for _, t := range keys {
		if now, _ := p.plan.claims.winner(t.key); now == t.had {
			continue
		}
		have, taken := p.plan.claims[t.key]
		if !taken {
			continue
		}
		ids = append(ids, have.first.owner(t.key))
		for _, c := range have.rest {
			ids = append(ids, c.owner(t.key))
		}
	}
	return ids
}

// reclaimAll brings the claims of all Services up to date with another policy, and lists all ports.
func (p *Planner) reclaimAll(cfg Config) (ids []PortID) {
	for _, s := range p.snap.Services {
		p.claim(nil, s, claims.remove, known.remove)
	}
	p.cfg = cfg
	for _, s := range p.snap.Services {
		p.claim(nil, s, claims.add, known.add)
		ids = appendPorts(ids, s)
	}
	return ids
}

// claim enters or removes all that a Service wants, and adds the frontends to keys that anybody had before. Who claims a
// frontend that nobody had is planned anyhow.
func (p *Planner) claim(keys []touched, s *model.Service, change func(claims, Key, claim) (claim, bool), count func(known, Frontend)) []touched {
	if s == nil || Skipped(s) != "" {
		return keys
	}
	var buffer [8]Frontend
	for _, ip := range s.ClusterIPs {
		for i := range s.Ports {
			for _, f := range p.appendWants(buffer[:0], s, i, model.FamilyOf(ip)) {
				if had, taken := change(p.plan.claims, f.Key, claim{s, uint16(i), f.Kind}); taken {
					keys = append(keys, touched{f.Key, had.owner(f.Key)})
				}
				count(p.plan.known, f)
			}
		}
	}
	return keys
}

// replan computes ports again, and returns those that came out different.
func (p *Planner) replan(ids []PortID) (changes []Change) {
	slices.SortFunc(ids, PortID.Compare)
	ids = slices.Compact(ids)
	if len(p.plan.Ports) == 0 {
		changes = make([]Change, 0, len(ids)) // all are new
	}
	for _, id := range ids {
		if c, different := p.plan.put(id, p.build(id, p.plan.Ports[id])); different {
			changes = append(changes, c)
		}
	}
	return changes
}

// build makes the plan of one Service port, or nil if there is no such port. It shares with old what is the same.
func (p *Planner) build(id PortID, old *Port) *Port {
	s := p.snap.Services[id.Service]
	number := portNumber(s, id)
	if number < 0 {
		return nil
	}
	node := &p.plan.Node
	var buffer [16]candidate
	chosen := choose(appendCandidates(buffer[:0], s, id, p.slices[s.Name], node.Name), node)
	port := &Port{
		ID:        id,
		Internal:  internalAccess(s.InternalPolicy, node, id.Family, chosen),
		External:  externalAccess(s.ExternalPolicy, chosen),
		Cluster:   chosen.cluster,
		Local:     chosen.local,
		Draining:  chosen.draining,
		Sources:   sources(s, id.Family, node),
		Affinity:  s.Affinity,
		Balancing: s.Balancing, Scheduler: s.Scheduler, ProxyProtocol: s.ProxyProtocol,
	}
	p.settle(port, s, number, old)
	return port
}

// settle enters the frontends that the port wants as had or as lost.
func (p *Planner) settle(port *Port, s *model.Service, number int, old *Port) {
	var buffer [8]Frontend
	wanted := p.appendWants(buffer[:0], s, number, port.ID.Family)
	had := wanted[:0] // in place, behind what the loop has read
	for _, f := range wanted {
		switch owner, kind := p.plan.claims.winner(f.Key); {
		case owner != port.ID:
			port.Lost = append(port.Lost, Loss{f, owner})
		case kind != f.Kind:
			// The same address twice, say as external and as load balancer IP: the first kind counts.
		case f.Kind == HealthCheckPort:
			port.HealthCheck = &HealthCheck{Port: f.Port, Ready: p.readyHere(s, port.ID.Family)}
		default:
			had = append(had, f)
		}
	}
	if old != nil && slices.Equal(old.Frontends, had) {
		port.Frontends = old.Frontends
	} else if len(had) > 0 {
		port.Frontends = slices.Clone(had)
	}
}
