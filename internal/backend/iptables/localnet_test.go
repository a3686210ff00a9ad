package iptables

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/kernel/sysctl"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

// localnetRig is a process that works with kernels in memory and a setting that only notes what it is told.
type localnetRig struct {
	*testing.T
	fakes   [2]*fakeTables
	backend *Backend
	told    []bool
	fail    error
	lost    bool // somebody took the guard away
}

func newLocalnetRig(t *testing.T, legacy bool) *localnetRig {
	_, fakes := newTestBackend(legacy)
	l := &localnetRig{T: t, fakes: fakes}
	l.restart()
	return l
}

func (l *localnetRig) restart() {
	l.backend = New(DefaultOptions(), Deps{Tables: [2]Tables{l.fakes[0], l.fakes[1]}, RouteLocalnet: func(on bool) error {
		l.told = append(l.told, on)
		if !l.guarded() && !l.lost {
			l.Errorf("told %t while nothing guards loopback addresses", on)
		}
		return l.fail
	}})
}

// guarded reports whether KUBE-FIREWALL has its rule.
func (l *localnetRig) guarded() bool {
	return l.fakes[0].contents[Filter][chainFirewall] == guardRule(model.IPv4)
}

// apply wants the setting to be told that, and an Apply to fail as the setting does.
func (l *localnetRig) apply(r *Ruleset, recheck bool, want ...bool) {
	l.Helper()
	_, err := l.backend.Apply(l.Context(), r, backend.Request{Recheck: recheck})
	if !errors.Is(err, l.fail) || backend.FailedFamilies(err) != [2]bool{l.fail != nil, false} {
		l.Errorf("error is %v, want %v", err, l.fail)
	}
	if !slices.Equal(l.told, want) {
		l.Errorf("told %v, want %v", l.told, want)
	}
	l.told = nil
}

// nodePortRules are those of one Service, with a node port or without one.
func nodePortRules(localhost, nodePort bool) *Ruleset {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10", "10.244.1.5"})
	if nodePort {
		s.Type, s.Ports[0].NodePort = model.NodePort, 30080
	}
	return Compile(sample.Plan(plan.Config{LocalhostNodePorts: localhost}, s, sl), DefaultOptions())
}

// Loopback addresses are routed while there are node ports on localhost, and no longer: at once if there can be none any
// more, else at the next recheck.
func TestRouteLocalnet(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		l := newLocalnetRig(t, legacy)
		l.apply(nodePortRules(true, false), true)
		l.apply(nodePortRules(true, true), false, true)
		l.apply(nodePortRules(true, false), false)
		l.apply(nodePortRules(true, true), false, true)
		l.apply(nodePortRules(true, false), false)
		l.apply(nodePortRules(true, false), true, false)
		l.apply(nodePortRules(true, false), true)
		l.apply(nodePortRules(true, true), false, true)
		l.apply(nodePortRules(false, true), false, false)
		l.apply(nodePortRules(false, true), true)
		l.apply(nodePortRules(true, true), false, true)
	}
}

// So it is if it was an earlier process that had node ports on localhost.
func TestRestartUnroutesLoopback(t *testing.T) {
	for _, before := range []struct {
		localhost, nodePort bool
		first, second       []bool
	}{
		{true, true, []bool{true}, []bool{false}},
		{true, false, nil, nil},
		{false, true, nil, nil},
	} {
		l := newLocalnetRig(t, false)
		l.apply(nodePortRules(before.localhost, before.nodePort), false, before.first...)
		l.restart()
		l.apply(nodePortRules(false, true), false, before.second...)
		l.restart()
		l.apply(nodePortRules(false, true), false)
	}
}

// The guard is looked after as long as the kernel cannot be told to route loopback addresses no longer, and all else is
// written.
func TestGuardStaysWhileLoopbackIsRouted(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		l := newLocalnetRig(t, legacy)
		l.apply(nodePortRules(true, true), false, true)
		l.fail = errors.New("/proc/sys is read-only here")
		l.apply(nodePortRules(false, true), false, false)
		if strings.Contains(l.fakes[0].contents[Nat][chainNodePorts], loopbackComment) {
			t.Errorf("the rest is not written:\n%s", l.fakes[0].contents[Nat][chainNodePorts])
		}
		l.fakes[0].remove(Filter, chainFirewall)
		l.lost = true
		l.apply(nodePortRules(false, true), true, false)
		if !l.guarded() {
			t.Error("the guard is not restored")
		}
		l.fail, l.lost = nil, false
		l.apply(nodePortRules(false, true), true, false)
		l.apply(nodePortRules(false, true), true)
	}
}

// What fails is tried again.
func TestFailedRouteLocalnetIsRepeated(t *testing.T) {
	l := newLocalnetRig(t, false)
	l.fail = errors.New("/proc/sys is read-only here")
	l.apply(nodePortRules(true, true), false, true)
	l.apply(nodePortRules(true, true), false, true)
	l.fail = nil
	l.apply(nodePortRules(true, true), false, true)
}

// The kernel's own setting follows.
func TestLocalnetInKernel(t *testing.T) {
	const key = "net.ipv4.conf.all.route_localnet"
	eachVariant(t, func(n *node) {
		n.deps.RouteLocalnet = func(on bool) error {
			_, err := sysctl.Set(key, map[bool]string{false: "0", true: "1"}[on])
			return err
		}
		n.restart()
		for _, localhost := range []bool{false, true, false, true} {
			n.apply(nodePortRules(localhost, true), false)
			if got := n.setting(key); got != map[bool]string{false: "0", true: "1"}[localhost] {
				n.Errorf("localhost %t: the setting is %s", localhost, got)
			}
		}
		n.restart()
		n.apply(nodePortRules(false, true), false)
		if got := n.setting(key); got != "0" {
			n.Errorf("another process leaves it at %s", got)
		}
	})
}

func (n *node) setting(key string) (value string) {
	n.Helper()
	n.do(func(context.Context) (err error) {
		value, err = sysctl.Get(key)
		return err
	})
	return value
}
