package userspace

import (
	"sluice/internal/model"
	"sluice/internal/plan"
)

// reserved reports whether a port of the node is a Service's, as node port or for health checks. These are answered in
// both families at once.
func (r *Ruleset) reserved(s socket) bool {
	for _, f := range model.Families {
		_, found, taken := r.plan.Owner(plan.NodePortKey(f, s.protocol, s.number))
		if taken && (f == s.family || found.Kind == plan.HealthCheckPort) {
			return true
		}
	}
	return false
}

// evict lists the Service ports that have to make room for a node port of p, or its health check's.
func (r *Ruleset) evict(p *plan.Port) (ids []plan.PortID) {
	note := func(s socket) {
		if k, ok := r.ports.owner[s]; ok {
			ids = append(ids, k.Port)
		}
	}
	for _, f := range p.Frontends {
		if f.Kind == plan.NodePort {
			note(socket{p.ID.Family, f.Protocol, f.Port})
		}
	}
	if p.HealthCheck != nil {
		for _, f := range model.Families {
			note(socket{f, model.TCP, p.HealthCheck.Port})
		}
	}
	return ids
}
