package plan

import (
	"maps"
	"slices"

	"sluice/internal/model"
)

// Plan is what must be true on this node.
type Plan struct {
	Node  Node
	Ports map[PortID]*Port

	claims claims
	known  known
	count  [2]int // of Ports, by family
}

// Sorted lists the Service ports by ID.
func (p *Plan) Sorted() []*Port {
	return slices.SortedFunc(maps.Values(p.Ports), func(a, b *Port) int { return a.ID.Compare(b.ID) })
}

// Owner finds the Service port that answers at k, and as what.
func (p *Plan) Owner(k Key) (*Port, Frontend, bool) {
	owner, kind := p.claims.winner(k)
	port := p.Ports[owner]
	if port == nil {
		return nil, Frontend{}, false
	}
	return port, Frontend{kind, k}, true
}

// Build computes the Plan of a whole Snapshot.
func Build(cfg Config, host Host, s *model.Snapshot) *Plan {
	p := NewPlanner(cfg)
	p.SetHost(host)
	p.Update(model.Delta(*s))
	return p.Plan()
}
