package app

import (
	"context"
	"iter"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"sluice/internal/health"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
	"sluice/internal/status"
)

// board is what a daemon knows of itself, gathered for those who ask.
type board struct {
	since time.Time
	api   func() *status.API
	relay *relayOfDaemon

	mu     sync.Mutex // guards all following fields
	mode   string
	loop   *reconcile.Loop
	counts counts
	node   plan.Node
	ports  map[plan.PortID]*plan.Port
	// What is wrong: by topic, and with the node.
	problems     map[any][]string
	nodeProblems []string
}

func newBoard(api func() *status.API, proxy *relayOfDaemon) *board {
	return &board{since: time.Now(), api: api, relay: proxy, problems: map[any][]string{}, ports: map[plan.PortID]*plan.Port{}}
}

// publish has b answer at l, and tell successor of who wants this daemon's place, until the function that it returns closes l.
func (b *board) publish(ctx context.Context, l net.Listener, successor func(net.Conn) bool) (end func() error) {
	ctx, stop := context.WithCancel(ctx)
	var answering sync.WaitGroup
	answering.Go(func() { status.Serve(ctx, l, status.Answers{Report: b.report, Successor: successor}) })
	return func() error {
		stop()
		err := l.Close()
		answering.Wait()
		return err
	}
}

// started is told of the parts once they are there.
func (b *board) started(mode string, c counts, l *reconcile.Loop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mode, b.counts, b.loop = mode, c, l
}

// planned follows the plan.
func (b *board) planned(p *plan.Plan, changes plan.Changes) {
	var problems []string
	for _, problem := range p.NodeProblems() {
		problems = append(problems, problem.String())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.node, b.nodeProblems = p.Node, problems
	for _, c := range changes.Ports {
		if c.New == nil {
			delete(b.ports, c.ID)
		} else {
			b.ports[c.ID] = c.New
		}
	}
}

// read is told what is wrong now with some topics; an empty list is the end of it.
func (b *board) read(problems map[any][]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for topic, texts := range problems {
		if len(texts) == 0 {
			delete(b.problems, topic)
		} else {
			b.problems[topic] = texts
		}
	}
}

// servesLoopback reports whether node ports answer on loopback addresses.
func (b *board) servesLoopback() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.node.NodePorts[model.IPv4].Loopback
}

// health is how far each family that this kernel has is behind.
func (b *board) health() (s health.State) {
	b.mu.Lock()
	loop := b.loop
	b.mu.Unlock()
	if loop == nil {
		return s
	}
	h := loop.Health()
	for _, f := range families() {
		s.Family[f] = &health.FamilyState{Updated: h.Family[f].Updated, Healthy: h.Family[f].Healthy}
	}
	return s
}

// report is all of it. It copies under the lock and thinks without it, so that it does not hold up the loop.
func (b *board) report(ctx context.Context) status.Report {
	b.mu.Lock()
	r := status.Report{Mode: b.mode, Node: b.node.Name, Since: b.since, Ports: []status.Port{}}
	problems, ofNode := maps.Clone(b.problems), b.nodeProblems
	loop, counts, ports := b.loop, b.counts, maps.Clone(b.ports)
	b.mu.Unlock()
	r.Problems, r.API = slices.Sorted(flat(maps.Values(problems))), b.api()
	if !r.Unread() { // else what the node lacks may yet come
		r.Problems = append(r.Problems, ofNode...)
	}
	if loop == nil {
		return r
	}
	r.Healthy, r.Applied = loop.Healthy(), applied(loop.Summary())
	states := loop.Status()
	connections, proxied := counts.within(ctx), b.relay.proxied()
	for _, id := range slices.SortedFunc(maps.Keys(states), plan.PortID.Compare) {
		port := portStatus(id, states[id], ports[id])
		port.Proxy, port.Open = proxied.of(id)
		if n, ok := connections[id]; ok {
			port.Connections = &n
		}
		r.Ports = append(r.Ports, port)
		if ports[id] == nil {
			continue
		}
		for _, p := range ports[id].Problems() {
			r.Problems = append(r.Problems, p.String())
		}
	}
	return r
}

// countLimit is how long the counts may take. They are left out while the kernel is written for longer.
const countLimit = time.Second

// within are the connections of each Service port, if the mode counts any.
func (c counts) within(ctx context.Context) map[plan.PortID]uint64 {
	if c.connections == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	n, _ := c.connections(ctx) // which tells of an error
	return n
}

func applied(s reconcile.Summary) *status.Applied {
	if s.Applies == 0 {
		return nil
	}
	return &status.Applied{
		Last: s.LastApply, LastSeconds: s.Took.Seconds(), Times: s.Applies,
		Failures: s.Failures, Written: s.Written, Restored: s.Restored,
	}
}

// portStatus is one Service port's; p is nil where it is about to go.
func portStatus(id plan.PortID, s reconcile.Status, p *plan.Port) status.Port {
	out := status.Port{
		Namespace: id.Service.Namespace, Name: id.Service.Name, Port: id.Port,
		Protocol: id.Protocol.String(), Family: id.Family.String(),
		State: string(s.State), Since: s.Since, Error: s.Error,
	}
	if p == nil {
		return out
	}
	out.Frontends, out.Endpoints = len(p.Frontends), p.EndpointsInUse()
	for _, f := range p.Frontends {
		if f.Kind == plan.ClusterIP {
			out.Number = f.Port
		}
	}
	return out
}

// flat is all that is in lists.
func flat(lists iter.Seq[[]string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for list := range lists {
			for _, text := range list {
				if !yield(text) {
					return
				}
			}
		}
	}
}
