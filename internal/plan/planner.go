package plan

import (
	"slices"

	"sluice/internal/model"
)

// Planner keeps a Plan up to date. A change costs what it touches: the ports of the Services concerned, and those of
// others only where a frontend changes hands or this node itself changes. It is not safe for concurrent use.
type Planner struct {
	cfg  Config
	host Host
	snap *model.Snapshot
	plan *Plan

	slices map[model.Name][]*model.Slice // by Service, sorted by name
}

// Change is a Service port that is new (Old is nil), gone (New is nil) or different.
type Change struct {
	ID       PortID
	Old, New *Port
}

// Changes is the difference that one update made.
type Changes struct {
	// Node is set when Plan.Node differs.
	Node  bool
	Ports []Change // sorted by ID
}

// Empty reports whether nothing differs.
func (c Changes) Empty() bool { return !c.Node && len(c.Ports) == 0 }

// NewPlanner makes a Planner of an empty Snapshot.
func NewPlanner(cfg Config) *Planner {
	p := &Planner{
		cfg:    cfg,
		snap:   model.NewSnapshot(),
		plan:   &Plan{Ports: map[PortID]*Port{}, claims: claims{}, known: known{}},
		slices: map[model.Name][]*model.Slice{},
	}
	p.plan.Node = newNode(cfg, Host{}, p.snap)
	return p
}

// Plan is the Plan as it stands. It changes with the next call of Update, SetHost or SetConfig; its Ports do not.
func (p *Planner) Plan() *Plan { return p.plan }

// SetConfig changes the policy.
func (p *Planner) SetConfig(cfg Config) Changes {
	var ids []PortID
	if cfg.IgnoreExternalIPs != p.cfg.IgnoreExternalIPs {
		ids = p.reclaimAll(cfg)
	}
	p.cfg = cfg
	node, ids := p.refreshNode(ids, nil)
	return Changes{Node: node, Ports: p.replan(ids)}
}

// SetHost tells what the kernel says of this machine.
func (p *Planner) SetHost(h Host) Changes {
	p.host = h
	node, ids := p.refreshNode(nil, nil)
	return Changes{Node: node, Ports: p.replan(ids)}
}

// Update applies a change of the Snapshot.
func (p *Planner) Update(d model.Delta) (c Changes) {
	ids := make([]PortID, 0, 8) // ports to compute again, some of them more than once
	if len(d.Services) > cap(ids) {
		ids = make([]PortID, 0, len(d.Services))
	}
	if len(p.snap.Services) == 0 {
		p.reserve(d)
	}
	ids = p.reclaim(ids, d)
	for name, s := range d.Slices {
		old := p.snap.Slices[name]
		p.indexSlice(old, s)
		ids = p.appendOwner(ids, d, old)
		ids = p.appendOwner(ids, d, s)
	}
	p.snap.Apply(d)
	if len(d.Nodes)+len(d.ServiceCIDRs) > 0 {
		c.Node, ids = p.refreshNode(ids, d.Services)
	}
	c.Ports = p.replan(ids)
	return c
}

// reserve makes room for all that the first Delta has: to grow as it comes would cost as much again.
func (p *Planner) reserve(d model.Delta) {
	n := len(d.Services)
	p.plan.Ports = make(map[PortID]*Port, n)
	p.plan.claims, p.plan.known = make(claims, n), make(known, n)
	if len(p.slices) == 0 {
		p.slices = make(map[model.Name][]*model.Slice, n)
	}
}

// appendOwner adds the ports of the Service that a Slice belongs to, unless d has the Service as well: its ports are in
// ids then. A nil Slice belongs to none.
func (p *Planner) appendOwner(ids []PortID, d model.Delta, s *model.Slice) []PortID {
	if s == nil {
		return ids
	}
	if _, whole := d.Services[s.Service]; whole {
		return ids
	}
	return appendPorts(ids, p.snap.Services[s.Service])
}

// indexSlice replaces a Slice in the index. Either may be nil.
func (p *Planner) indexSlice(old, new *model.Slice) {
	find := func(s *model.Slice) (all []*model.Slice, at int) {
		all = p.slices[s.Service]
		at, _ = slices.BinarySearchFunc(all, s, func(a, b *model.Slice) int { return a.Name.Compare(b.Name) })
		return all, at
	}
	if old != nil && new != nil && old.Service == new.Service {
		all, at := find(old)
		all[at] = new
		return
	}
	if old != nil {
		if all, at := find(old); len(all) > 1 {
			p.slices[old.Service] = slices.Delete(all, at, at+1)
		} else {
			delete(p.slices, old.Service)
		}
	}
	if new != nil {
		all, at := find(new)
		p.slices[new.Service] = slices.Insert(all, at, new)
	}
}

// refreshNode reports whether this node is another than before. It adds all ports if they depend on what is new, but for
// those of Services that ids has already: addresses come and go with every pod's interface.
func (p *Planner) refreshNode(ids []PortID, has map[model.Name]*model.Service) (bool, []PortID) {
	old, n := p.plan.Node, newNode(p.cfg, p.host, p.snap)
	if n.equal(&old) {
		return false, ids
	}
	p.plan.Node = n
	if n.decisive() != old.decisive() {
		for name, s := range p.snap.Services {
			if _, ok := has[name]; !ok {
				ids = appendPorts(ids, s)
			}
		}
	}
	return true, ids
}
