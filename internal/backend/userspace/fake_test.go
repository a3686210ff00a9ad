package userspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/relay/count"
	"sluice/internal/trace"
	"sluice/internal/trace/plantrace"
)

// inner is a mode whose kernel has plans.
type inner struct {
	world   *world
	led     map[plan.PortID]*plan.Port // what the kernel has
	refuse  map[plan.PortID]bool
	request backend.Request
	fail    error
	updates int
}

type innerRules struct {
	inner *inner
	plan  *plan.Plan
}

func (r *innerRules) Update(p *plan.Plan, _ plan.Changes) { r.plan = p; r.inner.updates++ }

func (r *innerRules) Render(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d Service ports\n", len(r.plan.Ports))
	return err
}

func (r *innerRules) Trace(pkt plan.Packet) trace.Result { return plantrace.Trace(r.plan, pkt) }

func (i *inner) Name() string { return "inner" }

func (i *inner) Compile(p *plan.Plan) backend.Ruleset { return &innerRules{i, p} }

// Apply checks that whatever it leads to is listened at.
func (i *inner) Apply(_ context.Context, r backend.Ruleset, req backend.Request) (res backend.Result, err error) {
	i.request = req
	next := maps.Clone(r.(*innerRules).plan.Ports)
	for id := range i.refuse {
		if old := i.led[id]; old != nil {
			next[id] = old
		} else {
			delete(next, id)
		}
		res.Refuse(id, errors.New("refused"))
	}
	if i.fail == nil {
		i.led = next
	}
	i.world.check("after the rules were written")
	return res, i.fail
}

func (i *inner) Cleanup(context.Context) error { i.led = nil; return nil }

// relayed is a Relay that listens at nothing.
type relayed struct {
	world   *world
	targets map[relay.Key]relay.Target
	counts  map[relay.Key]count.Counts
	// taken are ports of others; broken is why nothing can be listened at.
	taken   map[uint16]bool
	broken  error
	dropped bool
	stopped bool
	puts    int
}

func (p *relayed) Put(t relay.Target) error {
	p.puts++
	switch {
	case p.stopped:
		return relay.ErrStopped
	case p.broken != nil:
		return &relay.BindError{Key: t.Key, Listen: t.Listen, Err: p.broken}
	case p.taken[t.Listen.Port()] && p.targets[t.Key].Listen != t.Listen:
		return &relay.BindError{Key: t.Key, Listen: t.Listen, Err: syscall.EADDRINUSE}
	}
	for k, other := range p.targets {
		if k != t.Key && other.Listen == t.Listen && k.Port.Protocol == t.Port.Protocol {
			p.world.Errorf("%s is to listen at %s, as %s does", t.Key, t.Listen, k)
		}
	}
	p.targets[t.Key] = t
	p.world.check("after a Put")
	return nil
}

func (p *relayed) Remove(k relay.Key) { p.end(k, true) }
func (p *relayed) Close(k relay.Key)  { p.end(k, false) }

// end checks that connections are drained of Services that are gone, and of no others.
func (p *relayed) end(k relay.Key, drains bool) {
	if gone := p.world.planner.Plan().Ports[k.Port] == nil; gone != drains {
		p.world.Errorf("%s: the Service is gone: %v; what came by it is drained: %v", k, gone, drains)
	}
	delete(p.targets, k)
	p.world.check("after a Remove or Close")
}

func (p *relayed) DropInherited() { p.dropped = true }

func (p *relayed) Stats() relay.Stats {
	s := relay.Stats{Targets: map[relay.Key]count.Counts{}}
	for k := range p.targets {
		s.Targets[k] = p.counts[k]
	}
	return s
}

// world is a Backend between fakes, and a plan.
type world struct {
	testing.TB
	planner *plan.Planner
	rules   *Ruleset
	backend *Backend
	inner   *inner
	proxy   *relayed
	now     time.Time
}

func newWorld(t testing.TB, opts Options) *world {
	t.Helper()
	w := &world{TB: t, planner: plan.NewPlanner(plan.Config{
		NodeName: "node-a", ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
	})}
	w.planner.SetHost(plan.Host{Addresses: addrs("192.168.10.11", "fd00:10::11")})
	w.planner.Update(model.Delta{Nodes: map[string]*model.Node{"node-a": {Name: "node-a", InternalIPs: addrs("192.168.10.11")}}})
	w.inner = &inner{world: w, refuse: map[plan.PortID]bool{}}
	w.proxy = &relayed{world: w, targets: map[relay.Key]relay.Target{}, counts: map[relay.Key]count.Counts{}, taken: map[uint16]bool{}}
	w.backend = New(opts, w.deps())
	w.rules = w.backend.Compile(w.planner.Plan()).(*Ruleset)
	return w
}

func (w *world) deps() Deps {
	return Deps{Rules: w.inner, Relay: w.proxy, Now: func() time.Time { return w.now }}
}

// applyLater is an Apply, and another one when what it left has been closed.
func (w *world) applyLater() {
	w.Helper()
	w.apply(backend.Request{})
	w.now = w.now.Add(Linger)
	w.apply(backend.Request{})
}

func addrs(texts ...string) (as []netip.Addr) {
	for _, s := range texts {
		as = append(as, netip.MustParseAddr(s))
	}
	return as
}

// check is what must be true at every moment: rules of this node lead to ports that their own list listens at.
func (w *world) check(when string) {
	w.Helper()
	for id, p := range w.inner.led {
		for _, l := range [...]plan.List{plan.ListCluster, plan.ListLocal} {
			for _, e := range p.Endpoints(l) {
				if t, ok := w.proxy.targets[relay.Key{Port: id, List: l}]; !ok || t.Listen.Port() != e.Port() {
					w.Errorf("%s: rules lead %s to %s, and what listens is %+v", when, id, e, t)
				}
			}
		}
	}
}

func (w *world) update(d model.Delta) {
	c := w.planner.Update(d)
	w.rules.Update(w.planner.Plan(), c)
}

func (w *world) apply(req backend.Request) backend.Result {
	w.Helper()
	res, err := w.backend.Apply(w.Context(), w.rules, req)
	if !errors.Is(err, w.inner.fail) {
		w.Fatal(err)
	}
	return res
}

// service is default/NAME at 10.96.0.IP and node port 30000+IP; its endpoints are on node-a, save those with a minus.
func service(name string, ip byte, protocol model.Protocol, endpoints []int, edit ...func(*model.Service)) model.Delta {
	s := &model.Service{
		Name: model.Name{Namespace: "default", Name: name}, Type: model.NodePort,
		ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, ip})},
		Ports:      []model.ServicePort{{Protocol: protocol, Port: 80, NodePort: 30000 + uint16(ip)}},
	}
	for _, f := range edit {
		f(s)
	}
	sl := &model.Slice{Name: s.Name, Service: s.Name, Ports: []model.SlicePort{{Protocol: protocol, Port: 8080}}}
	for _, e := range endpoints {
		node, host := "node-a", e
		if e < 0 {
			node, host = "node-b", -e
		}
		sl.Endpoints = append(sl.Endpoints, model.Endpoint{
			Address: netip.AddrFrom4([4]byte{10, 244, 0, byte(host)}), Node: node, Ready: true, Serving: true,
		})
	}
	return model.Delta{Services: map[model.Name]*model.Service{s.Name: s}, Slices: map[model.Name]*model.Slice{s.Name: sl}}
}

func local(s *model.Service) { s.ExternalPolicy = model.PolicyLocal }

func idOf(name string, protocol model.Protocol) plan.PortID {
	return plan.PortID{Service: model.Name{Namespace: "default", Name: name}, Protocol: protocol}
}

func gone(name string) model.Delta {
	n := model.Name{Namespace: "default", Name: name}
	return model.Delta{Services: map[model.Name]*model.Service{n: nil}, Slices: map[model.Name]*model.Slice{n: nil}}
}
