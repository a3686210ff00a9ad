package ipvs

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"sluice/internal/backend"
	"sluice/internal/kernel/ipvs"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/gen"
	"sluice/internal/testkit/sample"
)

// TestUpdateIsCompile: a Ruleset that follows changes is that of compiling anew.
func TestUpdateIsCompile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRig(t, Options{}, model.Delta(*gen.Snapshot(t)))
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			if rapid.IntRange(0, 9).Draw(t, "host") == 0 {
				w.rules.Update(w.planner.Plan(), w.planner.SetHost(gen.Host(t)))
			}
			w.change(gen.Delta(t))
			fresh := Compile(w.planner.Plan(), w.opts, w.inner)
			if got, want := w.rules.wanted(), fresh.wanted(); !slices.Equal(got, want) {
				t.Fatalf("updated:\n%s\ncompiled:\n%s", join(got), join(want))
			}
			if len(w.rules.places) != len(fresh.places) || len(w.rules.marked) != len(fresh.marked) {
				t.Fatalf("%d places, %d marked; want %d, %d", len(w.rules.places), len(w.rules.marked), len(fresh.places), len(fresh.marked))
			}
		}
	})
}

// TestAddressesOfPods: an address that comes to the node with a pod costs nothing, and one that a Service has costs that alone.
func TestAddressesOfPods(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	w.apply(backend.Request{})
	has := sample.Addrs("192.168.10.11", "fd00:10::11")
	for _, tt := range []struct {
		comes string
		addrs int
	}{{"fe80::1", 0}, {"10.96.0.10", 1}} {
		has = append(has, netip.MustParseAddr(tt.comes))
		w.rules.Update(w.planner.Plan(), w.planner.SetHost(plan.Host{Addresses: slices.Clone(has)}))
		if d := w.rules.takeDirty(); d.all || len(d.servers) != 0 || len(d.addrs) != tt.addrs {
			t.Errorf("%s: %+v are to be compared", tt.comes, d)
		}
	}
}

// TestKernelFollows changes Services, opens and ends connections, has calls fail, and kills the process at random. No
// connection that lasts is ever lost, the rules never lead where there is nothing, what others have stays, and in the
// end the kernel has what is wanted.
func TestKernelFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRig(t, Options{}, model.Delta(*gen.Snapshot(t)))
		foreign := ipvs.Server{Name: at(ipvs.TCP, "203.0.113.77:80"), Scheduler: "wlc"}
		if err := w.kernel.Add(foreign); err != nil {
			t.Fatal(err)
		}
		works := w.fault
		w.inner.applied = func(*ruleset) (backend.Result, error) {
			w.checkReady()
			return backend.Result{}, nil
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			w.step(t)
			if w.lost > 0 {
				t.Fatalf("%d connections lost", w.lost)
			}
		}
		w.failed, w.fault = false, works
		w.apply(backend.Request{Recheck: true})
		for _, s := range w.servers {
			for _, d := range s.destinations {
				d.Active, d.Inactive = 0, 0
			}
		}
		w.backend.lookAtDraining()
		w.apply(backend.Request{})
		if w.servers[foreign.Name] == nil || w.servers[foreign.Name].Server != foreign {
			t.Fatalf("the server of others is %+v", w.servers[foreign.Name])
		}
		delete(w.servers, foreign.Name)
		if got, want := w.dump(), w.rules.wanted(); !sameLines(got, want) {
			t.Fatalf("the kernel has\n%s\nwant\n%s", join(got), join(want))
		}
		if r := w.apply(backend.Request{Recheck: true}); r.Written != 0 {
			t.Fatalf("written again: %+v", r)
		}
	})
}

// step does one thing at random, and applies.
func (w *rig) step(t *rapid.T) {
	w.tb = t
	w.failed, w.fault = false, w.faults(t)
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0:
		w.restart()
	case 1:
		w.rules.Update(w.planner.Plan(), w.planner.SetHost(gen.Host(t)))
	case 2, 3:
		w.traffic(t)
		w.backend.lookAtDraining()
	default:
		w.change(gen.Delta(t))
	}
	req := backend.Request{Recheck: rapid.IntRange(0, 3).Draw(t, "recheck") == 0}
	_, _ = w.backend.Apply(t.Context(), w.rules, req) // may fail; nothing is lost by that
}

// traffic opens and ends connections. New ones go where there is a weight.
func (w *rig) traffic(t *rapid.T) {
	for _, n := range sortedNames(w.servers) {
		for _, a := range slices.SortedFunc(maps.Keys(w.servers[n].destinations), netip.AddrPort.Compare) {
			d := w.servers[n].destinations[a]
			switch rapid.IntRange(0, 3).Draw(t, "traffic") {
			case 0:
				d.Active, d.Inactive = 0, 0
			case 1:
				if d.Weight > 0 {
					d.Active++
				}
			case 2:
				d.Inactive, d.Active = d.Inactive+d.Active, 0
			}
		}
	}
}

// faults has some calls fail: refused, or done and not answered.
func (w *rig) faults(t *rapid.T) func(string) (error, error) {
	if rapid.Bool().Draw(t, "works") {
		return func(string) (error, error) { return nil, nil }
	}
	left := rapid.IntRange(0, 10).Draw(t, "until a fault")
	why := rapid.SampledFrom([]error{syscall.ENOSPC, syscall.EPERM, syscall.EEXIST, syscall.ESRCH, errors.New("closed")}).Draw(t, "fault")
	after := rapid.Bool().Draw(t, "done")
	return func(string) (error, error) {
		if left--; left != 0 {
			return nil, nil
		}
		w.failed = true
		if after {
			return nil, why
		}
		return why, nil
	}
}

// checkReady is for the moment when the rules are written: unless something failed, what they lead to is there.
func (w *rig) checkReady() {
	if w.failed {
		return
	}
	for _, l := range w.rules.wanted() {
		if !slices.Contains(w.dump(), l) {
			w.Fatalf("the rules come before %s", l)
		}
	}
}

func sortedNames(m map[ipvs.Name]*fakeServer) []ipvs.Name {
	return slices.SortedFunc(maps.Keys(m), func(a, b ipvs.Name) int { return serverOf(a).Compare(serverOf(b)) })
}
