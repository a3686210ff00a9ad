package nftables

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/kernel/sysctl"
)

// localnet stands in for the kernel's setting.
type localnet struct {
	testing.TB
	told []bool
	fail error
}

// set is told nothing while the table does not guard loopback addresses.
func (l *localnet) set(on bool) error {
	l.told = append(l.told, on)
	if !guards(l.TB) {
		l.Errorf("told %t while nothing guards loopback addresses", on)
	}
	return l.fail
}

func (l *localnet) wasTold(want ...bool) {
	l.Helper()
	if !slices.Equal(l.told, want) {
		l.Errorf("told %v, want %v", l.told, want)
	}
	l.told = nil
}

// guards reports whether the kernel's table keeps loopback addresses from the network.
func guards(t testing.TB) bool {
	t.Helper()
	return strings.Contains(nftProgram(t, "", "list", "chain", "inet", "sluice", "filter-input"), "127.0.0.0/8")
}

func onLocalnet(t *testing.T) (*Backend, *localnet) {
	t.Helper()
	b, l := inKernel(t), &localnet{TB: t}
	b.deps.RouteLocalnet = l.set
	t.Cleanup(func() { b.deps.RouteLocalnet = nil }) // before the table is cleaned up
	return b, l
}

// localhost has node ports be served on localhost, or no longer.
func (w *rig) localhost(on bool) {
	cfg := testConfig()
	cfg.NodePortAddresses.Localhost, cfg.LocalhostNodePorts = true, on
	changes := w.planner.SetConfig(cfg)
	w.rules.Update(w.planner.Plan(), changes)
}

// failsForIPv4 has an Apply report an error for IPv4 alone.
func failsForIPv4(t testing.TB, b *Backend, r *Ruleset, want error) {
	t.Helper()
	if _, err := b.Apply(t.Context(), r, backend.Request{}); !errors.Is(err, want) || backend.FailedFamilies(err) != [2]bool{true, false} {
		t.Errorf("error is %v, want one of IPv4", err)
	}
}

var errReadOnly = errors.New("read-only")

// Loopback addresses are routed once the table guards them, again when all is looked at, and no longer before the guard
// goes. What fails is tried again.
func TestRouteLocalnet(t *testing.T) {
	b, l := onLocalnet(t)
	w := newRig(t, service(1, 5))
	apply(t, b, w.rules)
	l.wasTold()
	w.localhost(true)
	l.fail = errReadOnly
	failsForIPv4(t, b, w.rules, errReadOnly)
	l.fail = nil
	for range 2 {
		apply(t, b, w.rules)
	}
	applyReq(t, b, w.rules, recheck)
	l.wasTold(true, true, true)
	w.localhost(false)
	for range 2 {
		apply(t, b, w.rules)
	}
	l.wasTold(false)
	if guards(t) {
		t.Error("the guard stays")
	}
	w.localhost(true)
	apply(t, b, w.rules)
	l.wasTold(true)
}

// The guard stays as long as the kernel cannot be told to route loopback addresses no longer, also in a new process; all
// else is written.
func TestGuardStaysWhileLoopbackIsRouted(t *testing.T) {
	b, l := onLocalnet(t)
	w := newRig(t, service(1, 5))
	w.localhost(true)
	apply(t, b, w.rules)
	l.wasTold(true)
	l.fail = errReadOnly
	w.localhost(false)
	w.change(service(2, 6))
	failsForIPv4(t, b, w.rules, errReadOnly)
	if b.known.ports[portID(2)] == nil {
		t.Error("another Service is not written")
	}
	cfg := testConfig()
	cfg.GuardClusterIPs = false
	w.rules.Update(w.planner.Plan(), w.planner.SetConfig(cfg)) // the table is made anew
	failsForIPv4(t, b, w.rules, errReadOnly)
	w = w.restarted()
	failsForIPv4(t, b, w.rules, errReadOnly)
	l.wasTold(false, false, false)
	if !guards(t) {
		t.Fatal("the guard went first")
	}
	l.fail = nil
	apply(t, b, w.rules)
	l.wasTold(false)
	if guards(t) {
		t.Error("the guard stays")
	}
	restarts(t, w)
}

// Node ports come back to localhost where they could not leave it.
func TestRoutedLoopbackIsServedAgain(t *testing.T) {
	b, l := onLocalnet(t)
	w := newRig(t, service(1, 5))
	w.localhost(true)
	apply(t, b, w.rules)
	l.fail = errReadOnly
	w.localhost(false)
	failsForIPv4(t, b, w.rules, errReadOnly)
	l.fail = nil
	w.localhost(true)
	apply(t, b, w.rules)
	l.wasTold(true, false, true)
	restarts(t, w)
}

// A table that could not be read may have guarded loopback addresses.
func TestUnknownTableUnroutesLoopback(t *testing.T) {
	b, l := onLocalnet(t)
	w := newRig(t, service(1, 5))
	w.localhost(true)
	apply(t, b, w.rules)
	w.localhost(false)
	b.known = nil
	a := &run{Backend: b, rules: w.rules, result: &backend.Result{}, blind: true}
	if err := a.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wasTold(true, false)
}

// Loopback addresses are not left open either if somebody took the table away.
func TestLostTableUnroutesLoopback(t *testing.T) {
	b, l := onLocalnet(t)
	w := newRig(t, service(1, 5))
	w.localhost(true)
	apply(t, b, w.rules)
	nftFile(t, "delete table inet sluice")
	var told []bool
	b.deps.RouteLocalnet = func(on bool) error {
		told = append(told, on)
		return errReadOnly
	}
	w.localhost(false)
	failsForIPv4(t, b, w.restarted().rules, errReadOnly)
	if !slices.Equal(told, []bool{false}) || !guards(t) {
		t.Errorf("told %v, and there is a guard: %t", told, guards(t))
	}
	l.wasTold(true)
}

// So it is with Cleanup.
func TestCleanupOfLostTableUnroutesLoopback(t *testing.T) {
	b, l := onLocalnet(t)
	w := newRig(t, service(1, 5))
	w.localhost(true)
	apply(t, b, w.rules)
	l.wasTold(true)
	nftFile(t, "delete table inet sluice")
	var told []bool
	b.deps.RouteLocalnet = func(on bool) error {
		told = append(told, on)
		return nil
	}
	if err := b.Cleanup(t.Context()); err != nil || !slices.Equal(told, []bool{false}) {
		t.Errorf("told %v, and the error is %v", told, err)
	}
}

// The kernel's own setting follows.
func TestLocalnetInKernel(t *testing.T) {
	b := inKernel(t)
	const key = "net.ipv4.conf.all.route_localnet"
	b.deps.RouteLocalnet = func(on bool) error {
		_, err := sysctl.Set(key, map[bool]string{false: "0", true: "1"}[on])
		return err
	}
	w := newRig(t, service(1, 5))
	for _, on := range []bool{false, true, false, true} {
		w.localhost(on)
		apply(t, b, w.rules)
		value, err := sysctl.Get(key)
		if err != nil {
			t.Fatal(err)
		}
		if routes := value == "1"; routes != on || guards(t) != on {
			t.Errorf("localhost %t: loopback addresses are routed: %t, and guarded: %t", on, routes, guards(t))
		}
	}
	if err := b.Cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if value, err := sysctl.Get(key); value != "0" || err != nil {
		t.Errorf("after Cleanup the setting is %q, %v", value, err)
	}
}
