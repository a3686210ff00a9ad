package reconcile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/plan/flows"
	"sluice/internal/trace"
)

// kernel is a backend whose rules are texts, one for each Service port.
type kernel struct {
	mu    *sync.Mutex // the world's
	rules map[plan.PortID]string
	took  time.Duration // how long an Apply takes
	fail  func() error
	// refuse are the ports whose rules cannot be written or removed, held those that an Apply was told to leave alone.
	refuse, held map[plan.PortID]bool
	// watch is what the kernel tells of others: "" or an error's text.
	watch chan string
	// applied are the starts of all Applies, and rechecks of those that read everything.
	applied, rechecks []time.Time
	former            []plan.Key
	restored          []string
	canceled          bool // an Apply saw its context end
}

type ruleset map[plan.PortID]string

func (r ruleset) Update(p *plan.Plan, c plan.Changes) {
	for _, change := range c.Ports {
		if change.New == nil {
			delete(r, change.ID)
		} else {
			r[change.ID] = ruleOf(change.New)
		}
	}
}

func (ruleset) Render(io.Writer) error         { return nil }
func (ruleset) Trace(plan.Packet) trace.Result { return trace.Result{} }

func ruleOf(p *plan.Port) string { return fmt.Sprint(p.Frontends, p.Cluster) }

func (k *kernel) Name() string                  { return "fake" }
func (k *kernel) Cleanup(context.Context) error { return nil }

func (k *kernel) Compile(p *plan.Plan) backend.Ruleset {
	r := ruleset{}
	for id, port := range p.Ports {
		r[id] = ruleOf(port)
	}
	return r
}

// Apply that fails may have written a part.
func (k *kernel) Apply(ctx context.Context, r backend.Ruleset, req backend.Request) (res backend.Result, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.applied = append(k.applied, time.Now())
	if req.Recheck {
		k.rechecks = append(k.rechecks, time.Now())
	}
	k.sleep()
	k.canceled = k.canceled || ctx.Err() != nil
	if k.fail != nil {
		err = k.fail()
	}
	want := r.(ruleset)
	k.held = req.Hold
	for _, id := range differing(want, k.rules) {
		switch rule, wanted := want[id]; {
		case req.Hold[id]:
		case k.refuse[id]:
			if res.Refused == nil {
				res.Refused = map[plan.PortID]error{}
			}
			res.Refused[id] = fmt.Errorf("%s: %w", id, errRefused)
		case wanted:
			k.rules[id] = rule
			res.Written++
		default:
			delete(k.rules, id)
			res.Written++
		}
		if err != nil && res.Written > 0 {
			break
		}
	}
	if err != nil {
		return res, err
	}
	res.Former, k.former = k.former, nil
	res.Restored, k.restored = k.restored, nil
	return res, nil
}

func differing(a, b map[plan.PortID]string) (ids []plan.PortID) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for id := range all {
		if rule, ok := a[id]; !ok || rule != b[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

func (k *kernel) Watch(ctx context.Context, changed func()) error {
	changed()
	for {
		select {
		case <-ctx.Done():
			return nil
		case text := <-k.watch:
			if text != "" {
				return errors.New(text)
			}
			changed()
		}
	}
}

func (k *kernel) sleep() {
	took := k.took
	k.mu.Unlock()
	time.Sleep(took)
	k.mu.Lock()
}

// tracking is a connection tracking table.
type tracking struct {
	mu     *sync.Mutex // the world's
	flows  []flows.Flow
	fail   func() error
	sweeps int
}

func (c *tracking) sweep(_ context.Context, stale func(flows.Flow) flows.Reason) (removed [2]int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweeps++
	var kept []flows.Flow
	for _, f := range c.flows {
		if stale(f) == flows.Fresh {
			kept = append(kept, f)
		}
	}
	if c.fail != nil {
		if err := c.fail(); err != nil {
			return removed, err
		}
	}
	for _, f := range c.flows {
		if !slices.Contains(kept, f) {
			removed[model.FamilyOf(f.To.Addr())]++
		}
	}
	c.flows = kept
	return removed, nil
}

// world is a running Loop with fakes around it, inside a bubble of synctest.
type world struct {
	*Loop
	t *testing.T
	// mu guards the fakes. The test has it, except while it waits for the loop.
	mu       sync.Mutex
	kernel   *kernel
	tracking *tracking
	events   chan Event
	snap     *model.Snapshot
	log      *bytes.Buffer
	stop     func() // ends the loop and waits
	start    time.Time
}

// run runs f in a bubble, beside a Loop with kube-proxy's periods.
func run(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, events: make(chan Event), snap: model.NewSnapshot(), log: &bytes.Buffer{}, start: time.Now(),
		}
		w.kernel, w.tracking = &kernel{mu: &w.mu, rules: map[plan.PortID]string{}, refuse: map[plan.PortID]bool{}, watch: make(chan string)}, &tracking{mu: &w.mu}
		w.mu.Lock()
		w.Loop = New(Config{
			SyncPeriod: 30 * time.Second, MinSyncPeriod: time.Second, Backend: w.kernel, Sweep: w.tracking.sweep,
			Planner: plan.NewPlanner(plan.Config{}), Log: slog.New(slog.NewTextHandler(w.log, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.Run(ctx, w.events); close(done) }()
		w.meanwhile(func() {}) // until it listens
		w.stop = func() { w.meanwhile(func() { cancel(); <-done }) }
		f(w)
		w.stop()
	})
}

// service makes default/NAME at a UDP port, with an endpoint at each of the ports given.
func service(name string, ip byte, endpoints ...uint16) (*model.Service, *model.Slice) {
	s := &model.Service{
		Name: model.Name{Namespace: "default", Name: name}, ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, ip})},
		Ports: []model.ServicePort{{Protocol: model.UDP, Port: 53}},
	}
	slice := &model.Slice{Name: s.Name, Service: s.Name}
	for _, port := range endpoints {
		slice.Ports = []model.SlicePort{{Protocol: model.UDP, Port: port}}
		slice.Endpoints = []model.Endpoint{{Address: netip.AddrFrom4([4]byte{10, 244, 0, ip}), Ready: true, Serving: true}}
	}
	return s, slice
}

// put changes one Service and tells the loop.
func (w *world) put(s *model.Service, slice *model.Slice) {
	next := w.snap.Clone()
	next.Services[s.Name], next.Slices[s.Name] = s, slice
	w.send(next)
}

func (w *world) remove(name string) {
	next := w.snap.Clone()
	n := model.Name{Namespace: "default", Name: name}
	delete(next.Services, n)
	delete(next.Slices, n)
	w.send(next)
}

func (w *world) send(next *model.Snapshot, problems ...string) {
	w.tell(Event{Input: &Input{Delta: model.Diff(w.snap, next)}, Problems: map[any][]string{"file": problems}})
	w.snap = next
}

func (w *world) tell(e Event) { w.meanwhile(func() { w.events <- e }) }

// wait lets d pass.
func (w *world) wait(d time.Duration) {
	w.meanwhile(func() { time.Sleep(d) })
}

// meanwhile leaves the fakes to the loop while f waits, and until the loop waits as well.
func (w *world) meanwhile(f func()) {
	w.mu.Unlock()
	f()
	synctest.Wait()
	w.mu.Lock()
}

// since gives times as seconds from the start.
func (w *world) since(times []time.Time) (s []float64) {
	for _, t := range times {
		s = append(s, t.Sub(w.start).Seconds())
	}
	return s
}

var (
	errRestore = errors.New("iptables-restore: line 3 failed")
	errRefused = errors.New("operation not supported")
)

// faults fails one call in ten.
func faults(rnd *rand.Rand) func() error {
	return func() error {
		if rnd.IntN(10) == 0 {
			return errRestore
		}
		return nil
	}
}
