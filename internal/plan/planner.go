package plan

import (
	"net/netip"
	"reflect"
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
	ids    map[model.Name][]PortID       // the ports that each Service has in the plan
	held   map[PortID][]heldClaim        // what each port has in plan.claims
}

type heldClaim struct {
	key Key
	claim
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
		ids:    map[model.Name][]PortID{},
		held:   map[PortID][]heldClaim{},
	}
	p.plan.Node = newNode(cfg, Host{}, p.snap)
	return p
}

// Plan is the Plan as it stands. It changes with the next call of Update, SetHost or SetConfig; its Ports do not.
func (p *Planner) Plan() *Plan { return p.plan }

// SetConfig changes the policy.
func (p *Planner) SetConfig(cfg Config) Changes {
	p.cfg = cfg
	return p.replanNode()
}

// SetHost tells what the kernel says of this machine.
func (p *Planner) SetHost(h Host) Changes {
	p.host = h
	return p.replanNode()
}

func (p *Planner) replanNode() Changes {
	dirty := dirty{}
	node := p.refreshNode(dirty)
	return p.replan(node, dirty)
}

// Update applies a change of the Snapshot.
func (p *Planner) Update(d model.Delta) Changes {
	dirty := dirty{}
	for name := range d.Services {
		dirty[name] = true
	}
	for name, s := range d.Slices {
		p.indexSlice(p.snap.Slices[name], s, dirty)
	}
	p.snap.Apply(d)
	node := len(d.Nodes)+len(d.ServiceCIDRs) > 0 && p.refreshNode(dirty)
	return p.replan(node, dirty)
}

// dirty is the Services whose ports must be computed again.
type dirty map[model.Name]bool

// indexSlice replaces a Slice in the index. Either may be nil.
func (p *Planner) indexSlice(old, new *model.Slice, dirty dirty) {
	if old != nil {
		dirty[old.Service] = true
		rest := slices.DeleteFunc(slices.Clone(p.slices[old.Service]), func(s *model.Slice) bool { return s.Name == old.Name })
		if p.slices[old.Service] = rest; len(rest) == 0 {
			delete(p.slices, old.Service)
		}
	}
	if new != nil {
		dirty[new.Service] = true
		all := p.slices[new.Service]
		at, _ := slices.BinarySearchFunc(all, new, func(a, b *model.Slice) int { return a.Name.Compare(b.Name) })
		p.slices[new.Service] = slices.Insert(slices.Clone(all), at, new)
	}
}

// refreshNode reports whether this node is another than before. Services are dirty only if they depend on what
// changed: addresses come and go with every pod's interface.
func (p *Planner) refreshNode(dirty dirty) bool {
	old, n := p.plan.Node, newNode(p.cfg, p.host, p.snap)
	if reflect.DeepEqual(n, old) {
		return false
	}
	p.plan.Node = n
	if n.decisive() != old.decisive() {
		for name := range p.snap.Services {
			dirty[name] = true
		}
	}
	return true
}

// decisive is what Ports depend on.
type decisive struct {
	name, zone    string
	primary       [2]netip.Addr
	detect        [2]Detector
	masqueradeAll bool
}

func (n *Node) decisive() decisive {
	return decisive{n.Name, n.Zone, n.Primary, n.Detect, n.MasqueradeAll}
}

// replan computes the dirty Services again.
func (p *Planner) replan(node bool, dirty dirty) Changes {
	before := map[PortID]*Port{}
	remember := func(id PortID) {
		if _, ok := before[id]; !ok {
			before[id] = p.plan.Ports[id]
		}
	}
	touched := map[Key]PortID{} // frontends that were claimed anew or given up, and who had them
	for name := range dirty {
		p.reclaim(name, touched, remember)
	}
	for key, had := range touched {
		p.handOver(key, had, remember)
	}
	for id := range before {
		p.rebuild(id)
	}
	return Changes{Node: node, Ports: p.difference(before)}
}

// reclaim brings a Service's ports and claims up to date.
func (p *Planner) reclaim(name model.Name, touched map[Key]PortID, remember func(PortID)) {
	for _, id := range p.ids[name] {
		remember(id)
		for _, h := range p.held[id] {
			touch(touched, h.key, p.plan.claims)
			p.plan.claims.remove(h.key, h.claim)
			p.plan.known.remove(Frontend{h.kind, h.key})
		}
		delete(p.held, id)
	}
	delete(p.ids, name)
	s := p.snap.Services[name]
	if s == nil {
		return
	}
	if ids := portsOf(s); len(ids) > 0 {
		p.ids[name] = ids
	}
	for _, id := range p.ids[name] {
		remember(id)
		for _, f := range wants(s, id) {
			c := claim{f.Kind, s.Created, id}
			touch(touched, f.Key, p.plan.claims)
			p.plan.claims.add(f.Key, c)
			p.plan.known.add(f)
			p.held[id] = append(p.held[id], heldClaim{f.Key, c})
		}
	}
}

// touch remembers who had a frontend before this update.
func touch(touched map[Key]PortID, k Key, cs claims) {
	if _, ok := touched[k]; !ok {
		w, _ := cs.winner(k)
		touched[k] = w.owner
	}
}

// handOver has every claimant of a frontend computed again if it changed hands.
func (p *Planner) handOver(k Key, had PortID, remember func(PortID)) {
	if w, _ := p.plan.claims.winner(k); w.owner == had {
		return
	}
	for _, c := range p.plan.claims[k] {
		remember(c.owner)
	}
}

func (p *Planner) rebuild(id PortID) {
	s := p.snap.Services[id.Service]
	if s == nil || !slices.Contains(p.ids[id.Service], id) {
		delete(p.plan.Ports, id)
		return
	}
	p.plan.Ports[id] = p.build(s, id)
}

// build makes the plan of one Service port.
func (p *Planner) build(s *model.Service, id PortID) *Port {
	node := &p.plan.Node
	chosen := choose(candidates(s, id, p.slices[s.Name], node.Name), node)
	port := &Port{
		ID:        id,
		Internal:  internalAccess(s.InternalPolicy, node, id.Family, chosen),
		External:  externalAccess(s.ExternalPolicy, chosen),
		Cluster:   chosen.cluster,
		Local:     chosen.local,
		Draining:  chosen.draining,
		Sources:   sources(s, id.Family, node),
		Affinity:  s.Affinity,
		Balancing: s.Balancing,
	}
	for _, f := range wants(s, id) {
		p.settle(port, f, s)
	}
	return port
}

// settle enters a frontend that the port wants as had or as lost.
func (p *Planner) settle(port *Port, f Frontend, s *model.Service) {
	switch w, _ := p.plan.claims.winner(f.Key); {
	case w.owner != port.ID:
		port.Lost = append(port.Lost, Loss{f, w.owner})
	case w.kind != f.Kind:
		// The same address twice, say as external and as load balancer IP: the first kind counts.
	case f.Kind == HealthCheckPort:
		port.HealthCheck = &HealthCheck{Port: f.Port, Ready: p.readyHere(s, port.ID.Family)}
	default:
		port.Frontends = append(port.Frontends, f)
	}
}

// readyHere counts the addresses of ready endpoints on this node, over all ports of a Service. Those that only serve
// while they terminate do not count, so that load balancers leave in time.
func (p *Planner) readyHere(s *model.Service, f model.Family) int {
	ready := map[string]bool{}
	for _, id := range p.ids[s.Name] {
		if id.Family != f {
			continue
		}
		cs := candidates(s, id, p.slices[s.Name], p.plan.Node.Name)
		for i := range cs {
			if c := &cs[i]; c.local && c.Ready {
				ready[c.Address.String()] = true
			}
		}
	}
	return len(ready)
}

// difference lists what became of the ports in before.
func (p *Planner) difference(before map[PortID]*Port) (cs []Change) {
	for id, old := range before {
		now := p.plan.Ports[id]
		switch {
		case old == nil && now == nil:
		case old != nil && now != nil && reflect.DeepEqual(old, now):
			p.plan.Ports[id] = old
		default:
			cs = append(cs, Change{id, old, now})
		}
	}
	slices.SortFunc(cs, func(a, b Change) int { return a.ID.Compare(b.ID) })
	return cs
}
