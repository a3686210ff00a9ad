package userspace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/relay/count"
)

// Whatever changes, fails or is refused: at no moment do rules lead to a port where their list is not listened for. The
// fakes look after each step.
func TestListensBeforeAndAfterTheRules(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, Options{Ports: PortRange{10000, 10015}})
	for range 500 {
		name := fmt.Sprint("service-", rnd.IntN(6))
		protocol := [...]model.Protocol{model.TCP, model.UDP}[rnd.IntN(2)]
		switch rnd.IntN(6) {
		case 0:
			w.update(gone(name))
		case 1:
			w.update(service(name, name[len(name)-1], protocol, nil))
		case 2:
			w.update(service(name, name[len(name)-1], protocol, []int{5, -6}, local))
		default:
			w.update(service(name, name[len(name)-1], protocol, []int{5 + rnd.IntN(5)}))
		}
		w.inner.fail, w.inner.refuse = nil, map[plan.PortID]bool{}
		switch rnd.IntN(6) {
		case 0:
			w.inner.fail = errors.New("no memory")
		case 1:
			w.inner.refuse[idOf(name, protocol)] = true
		case 2:
			w.proxy.taken[uint16(10000+rnd.IntN(16))] = true
		case 3:
			clear(w.proxy.taken)
			w.rules.ports.taken = map[socket]bool{}
		}
		w.apply(backend.Request{})
		w.now = w.now.Add(time.Duration(rnd.IntN(3)) * Linger / 2)
	}
	for name := range 6 {
		w.update(gone(fmt.Sprint("service-", name)))
	}
	w.inner.fail, w.inner.refuse = nil, nil
	w.applyLater()
	if n := len(w.proxy.targets) + len(w.rules.ports.owner) + len(w.rules.pending) + len(w.backend.leaving); n != 0 {
		t.Errorf("after all Services are gone: targets %v, ports %v, pending %v", w.proxy.targets, w.rules.ports.owner, w.rules.pending)
	}
}

// What the kernel refuses, or is not asked about, it has as it was: the proxy goes on for it.
func TestListensForWhatTheKernelKeeps(t *testing.T) {
	w := newWorld(t, DefaultOptions())
	w.update(service("web", 1, model.TCP, []int{5}))
	w.apply(backend.Request{})
	id := idOf("web", model.TCP)
	w.update(gone("web"))
	w.inner.refuse[id] = true
	if res := w.apply(backend.Request{}); res.Refused[id] == nil {
		t.Errorf("refused are %v, want %s", res.Refused, id)
	}
	w.apply(backend.Request{Hold: map[plan.PortID]bool{id: true}})
	if len(w.proxy.targets) != 1 {
		t.Errorf("%d targets while the kernel leads there, want 1", len(w.proxy.targets))
	}
	delete(w.inner.refuse, id)
	w.apply(backend.Request{})
	if len(w.proxy.targets) != 1 {
		t.Errorf("%d targets as soon as the rules are gone, want 1 for whoever is on the way", len(w.proxy.targets))
	}
	w.applyLater()
	if len(w.proxy.targets) != 0 {
		t.Errorf("%d targets at the end, want none", len(w.proxy.targets))
	}
}

func TestRefusals(t *testing.T) {
	sctp, six, broken := idOf("sctp", model.SCTP), idOf("six", model.TCP), idOf("web", model.TCP)
	six.Family = model.IPv6
	w := newWorld(t, DefaultOptions())
	w.planner.SetHost(plan.Host{Addresses: addrs("192.168.10.11")}) // none of IPv6
	w.rules = w.backend.Compile(w.planner.Plan()).(*Ruleset)
	w.update(service("sctp", 1, model.SCTP, []int{5}, local))
	d := service("six", 2, model.TCP, nil, func(s *model.Service) { s.ClusterIPs = addrs("fd00:96::2") })
	for _, sl := range d.Slices {
		sl.Family = model.IPv6
		sl.Endpoints = []model.Endpoint{{Address: addrs("fd00:244::5")[0], Ready: true, Serving: true}}
	}
	w.update(d)
	w.update(service("web", 3, model.TCP, []int{5}))
	w.proxy.broken = syscall.EMFILE

	res := w.apply(backend.Request{})
	for id, want := range map[plan.PortID]error{sctp: ErrSCTP, six: ErrNoAddress, broken: syscall.EMFILE} {
		if by := backend.RefusedBy(res.Refused[id]); by != "the proxy" {
			t.Errorf("%s (%s): refused by %s", id, id.Family, by)
		}
		if !errors.Is(res.Refused[id], want) {
			t.Errorf("%s (%s): %v, want %v", id, id.Family, res.Refused[id], want)
		}
		for _, route := range w.inner.led[id].Internal {
			if route.Action != plan.Reject {
				t.Errorf("%s: clients of the cluster IP meet %v, want that they are told", id, route)
			}
		}
	}
	all := map[plan.PortID]bool{sctp: true, six: true, broken: true}
	w.proxy.broken = nil
	if res := w.apply(backend.Request{Hold: all}); len(res.Refused) != 0 || w.proxy.puts > 1 || len(w.inner.request.Hold) != 0 {
		t.Errorf("while all wait: refused are %v, %d attempts to listen, and the inner mode holds %v", res.Refused, w.proxy.puts, w.inner.request.Hold)
	}
	if res := w.apply(backend.Request{}); res.Refused[broken] != nil || len(w.proxy.targets) != 1 {
		t.Errorf("refused are %v, targets %v; want web proxied", res.Refused, w.proxy.targets)
	}
}

// A proxy that has given its sockets away is no reason to refuse clients: the rules stay for the process that has them.
func TestStoppedProxyLeavesTheRules(t *testing.T) {
	w := newWorld(t, DefaultOptions())
	w.update(service("web", 1, model.TCP, []int{5}))
	w.apply(backend.Request{})
	w.proxy.stopped = true
	w.update(service("web", 1, model.TCP, []int{6}))
	w.update(service("api", 2, model.TCP, []int{6}))
	before := w.inner.updates
	for range 2 {
		if _, err := w.backend.Apply(t.Context(), w.rules, backend.Request{}); !errors.Is(err, relay.ErrStopped) {
			t.Errorf("%v, want %v", err, relay.ErrStopped)
		}
	}
	if w.inner.led[idOf("api", model.TCP)] != nil || w.inner.updates != before {
		t.Error("the rules changed")
	}
}

// A port that some other program has is passed over, and the rules lead to the next.
func TestTakesTheNextPort(t *testing.T) {
	w := newWorld(t, DefaultOptions())
	w.update(service("web", 1, model.UDP, []int{5}))
	k := relay.Key{Port: idOf("web", model.UDP), List: plan.ListCluster}
	first := w.rules.targets[k].Listen.Port()
	w.proxy.taken[first] = true
	w.rules.Leads()
	if res := w.apply(backend.Request{}); len(res.Refused) != 0 {
		t.Fatal(res.Refused)
	}
	if got := w.proxy.targets[k].Listen.Port(); got != first+1 {
		t.Errorf("the proxy listens at %d, want %d", got, first+1)
	}
	p, changes := w.rules.Leads()
	if at := p.Ports[k.Port].Cluster[0].Port(); at != first+1 || len(changes.Ports) != 1 {
		t.Errorf("connections are led to %d by %d changes", at, len(changes.Ports))
	}
}

// A Backend that comes after another one takes its listeners over.
func TestTakesListenersOver(t *testing.T) {
	w := newWorld(t, DefaultOptions())
	w.update(service("web", 1, model.TCP, []int{5}))
	w.update(service("old", 2, model.TCP, []int{5}))
	direct := relay.Key{Port: idOf("old", model.TCP), List: plan.ListCluster, Direct: true}
	w.proxy.targets[direct] = relay.Target{Key: direct}
	w.apply(backend.Request{})
	w.update(gone("old"))
	w.inner.led = nil

	w.backend = New(DefaultOptions(), w.deps())
	w.rules = w.backend.Compile(w.planner.Plan()).(*Ruleset)
	w.proxy.dropped, w.inner.fail = false, errors.New("no memory")
	w.apply(backend.Request{})
	if len(w.proxy.targets) != 3 || w.proxy.dropped {
		t.Errorf("as long as the rules may be another's: targets %v, inherited dropped: %v", w.proxy.targets, w.proxy.dropped)
	}
	w.inner.fail = nil
	w.applyLater()
	if _, ok := w.proxy.targets[direct]; !ok || len(w.proxy.targets) != 2 || !w.proxy.dropped {
		t.Errorf("then: targets %v, inherited dropped: %v", w.proxy.targets, w.proxy.dropped)
	}
	if err := w.backend.Cleanup(t.Context()); err != nil || len(w.proxy.targets) != 1 {
		t.Errorf("after Cleanup: %v, targets %v", err, w.proxy.targets)
	}
}

// What a list has counted stays when the Service port does without it for a while, and goes with the Service port.
func TestConnections(t *testing.T) {
	w := newWorld(t, DefaultOptions())
	w.update(service("web", 1, model.TCP, []int{5, -6}, local))
	w.apply(backend.Request{})
	id := idOf("web", model.TCP)
	counted := func(accepted, direct uint64) (c count.Counts) {
		c.Accepted, c.Refused[count.NotRedirected] = accepted, direct
		return c
	}
	w.proxy.counts[relay.Key{Port: id, List: plan.ListCluster}] = counted(7, 2)
	w.proxy.counts[relay.Key{Port: id, List: plan.ListLocal}] = counted(3, 0)
	want := func(n uint64, there bool) {
		t.Helper()
		all, err := w.backend.Connections(t.Context())
		if got, ok := all[id]; got != n || ok != there || err != nil {
			t.Errorf("%d connections, %v, %v; want %d", got, ok, err, n)
		}
	}
	want(8, true)
	w.update(service("web", 1, model.TCP, []int{5, -6}))
	w.applyLater()
	want(8, true)
	w.update(gone("web"))
	w.applyLater()
	want(0, false)
	w.proxy.counts = nil
	w.update(service("web", 1, model.TCP, []int{5}))
	w.apply(backend.Request{})
	want(0, true)
}
