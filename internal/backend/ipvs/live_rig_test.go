package ipvs_test

import (
	"net/netip"
	"testing"

	"sluice/internal/backend"
	"sluice/internal/backend/ipvs"
	"sluice/internal/backend/nftables"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/sample"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// site is a lab whose node runs the mode, with the rules of nf_tables beside the virtual servers.
type site struct {
	*testing.T
	*lab.Lab
	planner *plan.Planner
	rules   *nftables.Backend
	backend *ipvs.Backend
	ruleset backend.Ruleset
	// fallback is what a Service port was told last of its scheduler.
	fallback error
}

// newSite has pods at each address of 10.244.1.0/24 and, on another node, 10.244.2.0/24, that answer at port 8080.
func newSite(t *testing.T, d model.Delta) *site {
	t.Helper()
	nstest.RequireIPVS(t)
	l, err := lab.Up(lab.Reference())
	must(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, pods := range []string{"pods-a", "pods-b"} {
		for _, p := range []model.Protocol{model.TCP, model.UDP} {
			_, err := l.Host(pods).ServeAll(p, 8080)
			must(t, err)
		}
	}
	s := &site{T: t, Lab: l, planner: plan.NewPlanner(plan.Config{
		NodeName: "node-a", GuardClusterIPs: true,
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/56")},
	})}
	node := sample.Addrs("192.168.10.11", "fd00:10::11")
	s.planner.SetHost(plan.Host{Addresses: node})
	s.planner.Update(model.Delta{Nodes: map[string]*model.Node{"node-a": {Name: "node-a", InternalIPs: node}}})
	s.planner.Update(d)
	s.restart()
	s.apply(backend.Request{})
	return s
}

// restart is a new process after one that had no time to say goodbye.
func (s *site) restart() {
	o := nftables.DefaultOptions()
	o.Deliver = nftables.DeliverIPVS
	s.rules = nftables.New(o, nftables.Deps{})
	b := ipvs.New(ipvs.Options{}, ipvs.Deps{
		Rules: s.rules, Warn: func(err error) { s.Errorf("warned: %v", err) },
		Fallback: func(_ plan.PortID, err error) { s.fallback = err },
	})
	rules := s.rules
	s.Cleanup(func() {
		_ = b.Close()
		_ = rules.Close()
	})
	s.backend, s.ruleset = b, b.Compile(s.planner.Plan())
}

func (s *site) apply(req backend.Request) (r backend.Result) {
	s.Helper()
	err := s.Node().Do(func() (err error) {
		r, err = s.backend.Apply(s.Context(), s.ruleset, req)
		return err
	})
	must(s.T, err)
	if len(r.Refused) > 0 {
		s.Fatalf("refused: %v", r.Refused)
	}
	return r
}

func (s *site) change(d model.Delta) {
	s.Helper()
	s.ruleset.Update(s.planner.Plan(), s.planner.Update(d))
	s.apply(backend.Request{})
}

// spread opens connections of a pod to default/web.
func (s *site) spread(n int) lab.Tally {
	s.Helper()
	tally, err := s.Host("pods-a").Spread(s.dial("10.244.1.50", webIP), n)
	must(s.T, err)
	if tally.Forwarded() != n {
		s.Errorf("%d of %d connections arrived: %v", tally.Forwarded(), n, tally.Failures)
	}
	return tally
}

func (s *site) dial(from, to string) lab.Dial {
	return lab.Dial{From: netip.MustParseAddr(from), To: netip.MustParseAddrPort(to), Protocol: model.TCP}
}

// connect opens a connection of a pod to default/web that stays.
func (s *site) connect() *lab.Conn {
	s.Helper()
	c, o, err := s.Host("pods-a").Connect(s.dial("10.244.1.50", webIP))
	must(s.T, err)
	if c == nil {
		s.Fatalf("connection to %s: %s", webIP, o)
	}
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// sh is the output of a command on the node.
func (s *site) sh(command string) string {
	s.Helper()
	out, err := s.Node().Command(s.Context(), "sh", "-c", command).CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// webIP is the frontend of default/web.
const webIP = "10.96.0.10:80"

// web is default/web with endpoints at 10.244.1.*, on this node.
func web(edit func(*model.Service), endpoints ...byte) model.Delta {
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

func pod(e byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 1, e}), 8080)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
