package ipvs

import (
	"context"
	"net/netip"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/kernel/ipvs"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

// rig is a plan that changes, the Ruleset that follows it, and a kernel that it is written to.
type rig struct {
	tb
	*kernel
	opts     Options
	planner  *plan.Planner
	rules    *Ruleset
	inner    *rules
	backend  *Backend
	fallback []error
	warned   []error
	failed   bool // a call did, since the last step began
}

// tb is a test, or a check of one.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// newRig has this node's addresses and what deltas say.
func newRig(t tb, opts Options, deltas ...model.Delta) *rig {
	w := &rig{tb: t, kernel: newKernel(), opts: opts, planner: plan.NewPlanner(plan.Config{NodeName: "node-a", GuardClusterIPs: true}), inner: newRules()}
	w.planner.SetHost(plan.Host{Addresses: sample.Addrs("192.168.10.11", "fd00:10::11")})
	for _, d := range deltas {
		w.planner.Update(d)
	}
	w.isUDP = func(mark uint32) bool {
		for id, m := range w.inner.marks {
			if m == mark {
				return id.Protocol == model.UDP
			}
		}
		return false
	}
	w.restart()
	return w
}

// restart is what a new process does first. The kernel is as it was.
func (w *rig) restart() {
	w.backend = New(w.opts, Deps{
		Rules:    w.inner,
		Servers:  func() (Servers, error) { return w.kernel, nil },
		Device:   func() (Device, error) { return device{w.kernel}, nil },
		Loaded:   func() bool { return true },
		Sysctl:   settings{w.kernel, nil},
		Sources:  func() (map[netip.Addr]bool, error) { return w.speak, nil },
		Warn:     func(err error) { w.warned = append(w.warned, err) },
		Fallback: func(_ plan.PortID, err error) { w.fallback = append(w.fallback, err) },
	})
	w.rules = w.backend.Compile(w.planner.Plan()).(*Ruleset)
}

// change brings the Ruleset up to date after a change of the objects.
func (w *rig) change(d model.Delta) {
	changes := w.planner.Update(d)
	w.rules.Update(w.planner.Plan(), changes)
}

func (w *rig) apply(req backend.Request) backend.Result {
	w.Helper()
	r, err := w.backend.Apply(context.Background(), w.rules, req)
	if err != nil {
		w.Fatalf("apply: %v", err)
	}
	return r
}

// want fails unless the kernel has these virtual servers with these destinations, as ipvsadm -S prints them, and no others.
func (w *rig) want(lines ...string) {
	w.Helper()
	if got := w.dump(); !sameLines(got, lines) {
		w.Errorf("the kernel has\n%s\nwant\n%s", join(got), join(lines))
	}
}

// web is Service default/web with TCP port 80 at 10.96.0.10 and endpoints 10.244.1.*, which are on this node.
func web(endpoints ...byte) model.Delta { return webWith(nil, endpoints...) }

func webWith(edit func(*model.Service), endpoints ...byte) model.Delta {
	s, sl := sample.Service(model.IPv4, []string{"10.96.0.10"})
	if edit != nil {
		edit(s)
	}
	sl.Ports[0].Protocol = s.Ports[0].Protocol
	for _, e := range endpoints {
		sl.Endpoints = append(sl.Endpoints, model.Endpoint{
			Address: netip.AddrFrom4([4]byte{10, 244, 1, e}), Node: "node-a", Ready: true, Serving: true,
		})
	}
	return model.Delta{Services: map[model.Name]*model.Service{s.Name: s}, Slices: map[model.Name]*model.Slice{sl.Name: sl}}
}

func noWeb() model.Delta {
	n := model.Name{Namespace: "default", Name: "web"}
	return model.Delta{Services: map[model.Name]*model.Service{n: nil}, Slices: map[model.Name]*model.Slice{n: nil}}
}

func udp(s *model.Service) { s.Ports[0].Protocol = model.UDP }

// connect has the destination of default/web have so many connections.
func (w *rig) connect(endpoint string, n uint32) {
	w.Helper()
	for _, s := range w.servers {
		if d := s.destinations[netip.MustParseAddrPort(endpoint)]; d != nil {
			d.Active = n
			return
		}
	}
	w.Fatalf("no destination %s", endpoint)
}

func at(p ipvs.Protocol, text string) ipvs.Name {
	to := netip.MustParseAddrPort(text)
	return ipvs.Name{Addr: to.Addr(), Protocol: p, Port: to.Port()}
}

var _ tb = testing.TB(nil)
