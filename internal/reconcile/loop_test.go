package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/plan/flows"
)

// Whatever fails in between, the kernel ends as a fresh start would make it, and no stale UDP entry is left.
func TestConvergesDespiteFailures(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	run(t, func(w *world) {
		t := w.t
		rnd := rand.New(rand.NewPCG(seed, 0))
		w.kernel.fail, w.tracking.fail = faults(rnd), faults(rnd)
		for range 300 {
			name, ip := fmt.Sprintf("s%d", rnd.IntN(8)), byte(0)
			_, _ = fmt.Sscanf(name, "s%d", &ip)
			switch rnd.IntN(4) {
			case 0:
				w.remove(name)
			case 1:
				w.put(service(name, ip))
			default:
				w.put(service(name, ip, uint16(5300+rnd.IntN(3))))
			}
			w.kernel.refuse[idOf(name)] = rnd.IntN(4) == 0
			w.tracking.flows = append(w.tracking.flows, w.connect(ip)...)
			w.wait(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		}
		clear(w.kernel.refuse)
		w.wait(3 * time.Minute)
		w.check(t)
	})
}

// idOf is the port of the Service that [service] makes.
func idOf(name string) plan.PortID {
	return plan.PortID{Service: model.Name{Namespace: "default", Name: name}, Protocol: model.UDP}
}

// connect opens a flow to a Service as the rules in the kernel have it.
func (w *world) connect(ip byte) []flows.Flow {
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, 0, ip}), 53)
	rule, ok := w.kernel.rules[idOf(fmt.Sprintf("s%d", ip))]
	if !ok {
		return nil
	}
	server := to
	for port := uint16(5300); port < 5303; port++ {
		if strings.Contains(rule, fmt.Sprintf(":%d", port)) {
			server = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 0, ip}), port)
		}
	}
	return []flows.Flow{{Client: netip.MustParseAddrPort("10.244.9.9:4000"), To: to, Server: server}}
}

func (w *world) check(t *testing.T) {
	t.Helper()
	fresh := plan.Build(plan.Config{}, plan.Host{}, w.snap)
	want := map[plan.PortID]string(w.kernel.Compile(fresh).(ruleset))
	if diff := cmp.Diff(want, w.kernel.rules); diff != "" {
		t.Error(diff)
	}
	for _, f := range w.tracking.flows {
		_, _, owned := fresh.Find(f.To, model.UDP)
		if f.Server != f.To && !owned || new(flows.History).Stale(fresh, f) != flows.Fresh {
			t.Errorf("stale flow left: %v", f)
		}
	}
	for id, s := range w.Status() {
		if s.State != Done {
			t.Errorf("%v: status %+v, want done", id, s)
		}
	}
	if !w.Healthy() {
		t.Error("everything is written: want healthy")
	}
}

func TestWritesNothingBeforeTheFirstInput(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.tell(Event{Host: &plan.Host{Addresses: []netip.Addr{netip.MustParseAddr("192.168.10.11")}}})
		w.tell(Event{Config: &Live{SyncPeriod: 30 * time.Second, MinSyncPeriod: time.Second}})
		w.tell(Event{Problems: map[any][]string{"configuration": {"line 3: no such thing"}}})
		w.wait(time.Minute)
		if len(w.kernel.applied) > 0 {
			t.Error("rules were written before the source had read anything")
		}
		w.put(service("a", 1, 5300))
		if got := w.since(w.kernel.applied); len(got) != 1 || got[0] != 60 {
			t.Errorf("writes at %v s, want one at 60 s", got)
		}
	})
}

func TestFirstChangeAtOnceTheRestTogether(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.kernel.took = 500 * time.Millisecond
		w.put(service("a", 1, 5300))
		w.wait(10 * time.Second)
		for i := range byte(50) {
			w.put(service(fmt.Sprintf("b%d", i), i, 5300))
		}
		w.wait(10 * time.Second)
		// The write at 10 s ends at 10.5 s, and the next begins a second later.
		if diff := cmp.Diff([]float64{0, 10, 11.5}, w.since(w.kernel.applied)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRetriesEverLater(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.kernel.fail = func() error { return errRestore }
		w.put(service("a", 1, 5300))
		w.wait(95 * time.Second)
		if diff := cmp.Diff([]float64{0, 1, 3, 7, 15, 31, 61, 91}, w.since(w.kernel.applied)); diff != "" {
			t.Error(diff)
		}
		for id, s := range w.Status() {
			if s.State != Failed || s.Error != errRestore.Error() || !s.Since.Equal(w.start) {
				t.Errorf("%v: status %+v, want an error since the start", id, s)
			}
		}
		if w.Healthy() {
			t.Error("nothing was written for 95 s: want unhealthy")
		}
		w.kernel.fail = nil
		w.wait(time.Minute)
		w.check(t)
	})
}

func TestTellsOnceThatTheRulesStand(t *testing.T) {
	run(t, func(w *world) {
		t, told := w.t, 0
		w.Stands = func() { told++ }
		w.kernel.fail = func() error { return errRestore }
		w.put(service("a", 1, 5300))
		w.wait(10 * time.Second)
		if told != 0 {
			t.Error("it was told while nothing could be written")
		}
		w.kernel.fail = nil
		w.wait(time.Minute)
		w.put(service("a", 1, 5301))
		w.wait(time.Minute)
		if told != 1 {
			t.Errorf("it was told %d times", told)
		}
	})
}

func TestRestoresInEveryPeriod(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.put(service("a", 1, 5300))
		clear(w.kernel.rules)
		w.kernel.restored = []string{"chain KUBE-SERVICES"}
		w.wait(31 * time.Second)
		w.check(t)
		if diff := cmp.Diff([]float64{0, 30}, w.since(w.kernel.rechecks)); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(w.log.String(), "chain KUBE-SERVICES") {
			t.Errorf("log %q, want what was restored", w.log)
		}
	})
}

func TestNamesTenOfWhatWasRestored(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		for i := range 5000 {
			w.kernel.restored = append(w.kernel.restored, fmt.Sprintf("chain KUBE-SEP-%d", i))
		}
		w.put(service("a", 1, 5300))
		if n := strings.Count(w.log.String(), "chain KUBE-SEP-"); n != 10 || !strings.Contains(w.log.String(), "more=4990") {
			t.Errorf("%d objects are named, want 10 and the number of the others; log %s", n, w.log)
		}
	})
}

func TestStopFinishesTheWriteUnderWay(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.kernel.took = 5 * time.Second
		w.put(service("a", 1, 5300))
		w.wait(time.Second)
		w.stop()
		if w.kernel.canceled {
			t.Error("the write was broken off")
		}
		if got := time.Since(w.start); got != 5*time.Second {
			t.Errorf("stopped after %v, want 5 s", got)
		}
		if len(w.kernel.rules) != 1 {
			t.Errorf("rules %v, want them to stay", w.kernel.rules)
		}
	})
}

func TestSweepsAfterTheRulesAndAgainIfItFails(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		flow := flows.Flow{
			Client: netip.MustParseAddrPort("10.244.9.9:4000"), To: netip.MustParseAddrPort("10.96.0.1:53"),
			Server: netip.MustParseAddrPort("10.244.0.1:5300"),
		}
		w.put(service("a", 1, 5300))
		w.tracking.flows = []flows.Flow{flow}
		w.wait(10 * time.Second)
		if w.tracking.sweeps != 1 {
			t.Errorf("%d sweeps, want the one at the start", w.tracking.sweeps)
		}
		w.tracking.fail = func() error { return errRestore }
		w.remove("a")
		w.wait(2 * time.Second)
		if len(w.tracking.flows) != 1 {
			t.Error("a failed sweep removed the flow")
		}
		w.tracking.fail = nil
		w.wait(10 * time.Second)
		if len(w.tracking.flows) != 0 {
			t.Error("the flow of a deleted Service is left")
		}
		done := w.tracking.sweeps
		w.wait(5 * time.Minute)
		if w.tracking.sweeps != done {
			t.Errorf("%d sweeps with nothing to do", w.tracking.sweeps-done)
		}
	})
}

// A Service that went while no daemon ran is known from its rules.
func TestSweepsWhatTheKernelsRulesServed(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		to := netip.MustParseAddrPort("10.96.0.1:53")
		w.kernel.former = []plan.Key{{Addr: to.Addr(), Protocol: model.UDP, Port: 53}}
		w.tracking.flows = []flows.Flow{{Client: netip.MustParseAddrPort("10.244.9.9:4000"), To: to, Server: netip.MustParseAddrPort("10.244.0.1:5300")}}
		w.send(model.NewSnapshot())
		if len(w.tracking.flows) != 0 {
			t.Error("the flow of a Service that went unseen is left")
		}
	})
}

// While rules were missing, clients that went on from one port were not translated, and connection tracking keeps that.
func TestSweepsAfterARepair(t *testing.T) {
	run(t, func(w *world) {
		w.put(service("a", 1, 5300))
		w.wait(time.Minute)
		to := netip.MustParseAddrPort("10.96.0.1:53")
		w.tracking.flows = []flows.Flow{{Client: netip.MustParseAddrPort("10.244.9.9:4000"), To: to, Server: to}}
		w.kernel.restored = []string{"table inet sluice"}
		w.wait(time.Minute) // it is read back
		if len(w.tracking.flows) != 0 {
			w.t.Error("a flow that began while rules were missing is left")
		}
	})
}

func TestTellsProblemsOnce(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		count := func(text string) int { return strings.Count(w.log.String(), text) }
		w.send(w.snap, "svc.yaml:3: bad port")
		w.send(w.snap, "svc.yaml:3: bad port", "svc.yaml:9: bad address")
		if count("bad port") != 1 || count("bad address") != 1 {
			t.Errorf("log %s, want each problem once", w.log)
		}
		w.send(w.snap)
		if count("problem is over") != 2 {
			t.Errorf("log %s, want the end of both told", w.log)
		}
		first, slice := service("first", 1, 5300)
		w.put(first, slice)
		second, slice := service("second", 2, 5300)
		second.ExternalIPs = first.ClusterIPs
		w.put(second, slice)
		if count("belongs to Service default/first") != 1 {
			t.Errorf("log %s, want the loser told", w.log)
		}
		w.remove("first")
		if count("problem is over") != 3 {
			t.Errorf("log %s, want the end of the clash told", w.log)
		}
	})
}

// Another mode has its own loop, with the same planner. It needs no new Input, and tells nothing anew.
func TestGoesOnAfterAnotherLoop(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.put(service("a", 1, 5300))
		w.send(w.snap, "svc.yaml:3: bad port")
		w.stop()
		clear(w.kernel.rules)
		c := w.Config
		c.After = w.Loop
		w.Loop = New(c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.Run(ctx, w.events); close(done) }()
		w.wait(0)
		w.check(t)
		w.send(w.snap, "svc.yaml:3: bad port")
		w.send(w.snap)
		if log := w.log.String(); strings.Count(log, "msg=problem ") != 1 || strings.Count(log, "problem is over") != 1 {
			t.Errorf("log %s, want the problem and its end told once", log)
		}
		w.meanwhile(func() { cancel(); <-done })
	})
}

// Changes without end do not keep a write waiting.
func TestGathersSoMuchAtOnce(t *testing.T) {
	run(t, func(w *world) {
		events := make(chan Event, 2*gatherLimit)
		for range cap(events) {
			events <- Event{}
		}
		w.gather(events)
		if n := len(events); n != gatherLimit {
			w.t.Errorf("%d of %d events are left, want %d", n, cap(events), gatherLimit)
		}
	})
}

func TestVeryManyProblemsMakeFewLines(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		var problems []string
		for i := range 50_000 {
			problems = append(problems, fmt.Sprintf("svc.yaml:%d: bad port", i))
		}
		w.send(w.snap, problems...)
		w.send(w.snap, problems[1:]...)
		if n := strings.Count(w.log.String(), "bad port"); n != noticesLimit+1 {
			t.Errorf("%d lines name a problem, want %d and the one that is over", n, noticesLimit)
		}
		if !strings.Contains(w.log.String(), "more=49900") {
			t.Error("that there are more is not told")
		}
	})
}

// A problem that comes and goes all the time does not fill the disk; what is told a minute later is told again.
func TestAProblemThatFlaps(t *testing.T) {
	run(t, func(w *world) {
		for range linesLimit {
			w.send(w.snap, "bad port")
			w.send(w.snap)
		}
		if n := strings.Count(w.log.String(), "bad port"); n < linesLimit/2 || n > linesLimit {
			w.t.Errorf("%d lines name it, want at most %d", n, linesLimit)
		}
		if n := strings.Count(w.log.String(), "too fast to tell each"); n != 1 {
			w.t.Errorf("that there was more is told %d times", n)
		}
		w.wait(time.Minute)
		w.send(w.snap, "worse port")
		if !strings.Contains(w.log.String(), "worse port") {
			w.t.Error("a minute later nothing is told")
		}
	})
}

func TestRepeatsThatTheNodeIsUnknown(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.Planner.SetConfig(plan.Config{NodeName: "node-x"}) // the loop has not begun to use it
		w.put(service("a", 1, 5300))
		w.wait(21 * time.Minute)
		if n := strings.Count(w.log.String(), "there is no such Node"); n != 3 {
			t.Errorf("told %d times in 21 minutes, want 3", n)
		}
	})
}

func TestOneFamilyFails(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		w.kernel.fail = func() error { return &backend.FamilyError{Family: model.IPv6, Err: errRestore} }
		s, slice := service("a", 1, 5300)
		s.ClusterIPs = append(s.ClusterIPs, netip.MustParseAddr("fd00:96::1"))
		w.put(s, slice)
		for id, got := range w.Status() {
			if want := map[model.Family]State{model.IPv4: Done, model.IPv6: Failed}[id.Family]; got.State != want {
				t.Errorf("%s: %+v, want %s", id.Family, got, want)
			}
		}
	})
}

// A family whose rules fail does not keep stale entries of the other, and its own go once its rules are right.
func TestSweepsTheFamilyThatWorks(t *testing.T) {
	run(t, func(w *world) {
		t := w.t
		s, slice := service("a", 1, 5300)
		s.ClusterIPs = append(s.ClusterIPs, netip.MustParseAddr("fd00:96::1"))
		six := *slice
		six.Name.Name, six.Family = "a-six", model.IPv6
		six.Endpoints = []model.Endpoint{{Address: netip.MustParseAddr("fd00:244::1"), Ready: true, Serving: true}}
		next := w.snap.Clone()
		next.Slices[six.Name] = &six
		w.send(next)
		w.put(s, slice)
		w.wait(10 * time.Second)

		w.tracking.flows = []flows.Flow{
			{Client: netip.MustParseAddrPort("10.244.9.9:4000"), To: netip.MustParseAddrPort("10.96.0.1:53"), Server: netip.MustParseAddrPort("10.244.0.1:5300")},
			{Client: netip.MustParseAddrPort("[fd00:244::9]:4000"), To: netip.MustParseAddrPort("[fd00:96::1]:53"), Server: netip.MustParseAddrPort("[fd00:244::1]:5300")},
		}
		w.kernel.fail = func() error { return &backend.FamilyError{Family: model.IPv6, Err: errRestore} }
		w.remove("a")
		w.wait(time.Minute)
		if left := w.tracking.flows; len(left) != 1 || !left[0].To.Addr().Is6() {
			t.Errorf("left while IPv6 fails: %v, want the IPv6 flow alone", left)
		}
		w.kernel.fail = nil
		w.wait(time.Minute)
		if len(w.tracking.flows) != 0 {
			t.Errorf("left at the end: %v", w.tracking.flows)
		}
	})
}
