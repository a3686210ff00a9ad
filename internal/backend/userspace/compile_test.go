package userspace

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/plan/flows"
	"sluice/internal/relay"
	"sluice/internal/testkit/gen"
)

var comparers = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(plan.Plan{}),
}

func compileInner(p *plan.Plan) backend.Ruleset { return &innerRules{&inner{}, p} }

// alike makes all of the proxy's ports one, since which it is may depend on what was before.
func alike(p *plan.Plan) *plan.Plan {
	same := func(es []plan.Endpoint) (out []plan.Endpoint) {
		for _, e := range es {
			e.AddrPort = netip.AddrPortFrom(e.Addr(), 1)
			out = append(out, e)
		}
		return out
	}
	return p.Mapped(func(port *plan.Port) *plan.Port {
		m := *port
		m.Cluster, m.Local = same(port.Cluster), same(port.Local)
		return &m
	})
}

// Whatever changes, the outcome is that of mapping anew, but for the numbers; and these are in order.
func TestMappedAfterChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan.NewPlanner(gen.Config(t))
		p.SetHost(gen.Host(t))
		p.Update(model.Delta(*gen.Snapshot(t)))
		opts := Options{Ports: PortRange{29990, 30010}} // among them node ports that are drawn
		r := Compile(p.Plan(), opts, compileInner)
		for range rapid.IntRange(1, 15).Draw(t, "changes") {
			change := p.Update(gen.Delta(t))
			if rapid.IntRange(0, 4).Draw(t, "addresses change") == 0 {
				more := p.SetHost(gen.Host(t))
				change.Node, change.Ports = change.Node || more.Node, append(change.Ports, more.Ports...)
			}
			r.Update(p.Plan(), change)
			r.ports.settle(everything)
			anew := Compile(p.Plan(), opts, compileInner)
			if diff := cmp.Diff(alike(anew.mapped), alike(r.mapped), comparers); diff != "" {
				t.Fatalf("mapped (-anew +updated):\n%s", diff)
			}
			checkTargets(t, r)
		}
	})
}

// checkTargets holds targets, numbers and the mapped plan against each other.
func checkTargets(t *rapid.T, r *Ruleset) {
	led := 0
	at := map[socket]relay.Key{}
	for id, port := range r.mapped.Ports {
		for _, l := range [...]plan.List{plan.ListCluster, plan.ListLocal} {
			for _, e := range port.Endpoints(l) {
				led++
				k := relay.Key{Port: id, List: l}
				target, ok := r.targets[k]
				if !ok || target.Listen.Port() != e.Port() || len(target.Endpoints) == 0 {
					t.Fatalf("%s is led to %s, and its target is %+v", k, e, target)
				}
				s := socketOf(k, e.Port())
				if other, two := at[s]; two {
					t.Fatalf("%s and %s have port %d", k, other, e.Port())
				}
				if at[s] = k; r.reserved(s) {
					t.Fatalf("%s has port %d, which is a node port", k, e.Port())
				}
			}
		}
	}
	if led != len(r.targets) {
		t.Fatalf("%d targets, and rules lead to %d", len(r.targets), led)
	}
}

// A change of endpoints is the proxy's business alone.
func TestEndpointsCostTheRulesNothing(t *testing.T) {
	w := newWorld(t, DefaultOptions())
	w.update(service("web", 1, model.TCP, []int{5, -6}))
	w.apply(backend.Request{})
	before := w.inner.updates
	w.update(service("web", 1, model.TCP, []int{5, 7, -6}))
	w.apply(backend.Request{})
	if w.inner.updates != before {
		t.Error("the inner mode is told of an endpoint")
	}
	k := relay.Key{Port: idOf("web", model.TCP), List: plan.ListCluster}
	if n := len(w.proxy.targets[k].Endpoints); n != 3 {
		t.Errorf("the proxy has %d endpoints, want 3", n)
	}
}

func TestTargets(t *testing.T) {
	w := newWorld(t, DefaultOptions())
	w.update(service("web", 1, model.TCP, []int{5, -6}, local, func(s *model.Service) {
		s.Affinity, s.Balancing, s.ProxyProtocol = time.Minute, model.BalanceLeastConnections, 2
	}))
	id := idOf("web", model.TCP)
	mapped := w.rules.mapped.Ports[id]
	if mapped.Affinity != 0 || mapped.ProxyProtocol != 0 || mapped.Balancing != model.BalanceDefault {
		t.Errorf("the inner mode has %+v, want what is the proxy's left out", mapped)
	}
	for l, want := range map[plan.List]int{plan.ListCluster: 2, plan.ListLocal: 1} {
		got := w.rules.targets[relay.Key{Port: id, List: l}]
		if len(got.Endpoints) != want || got.Affinity != time.Minute || got.Balancing != model.BalanceLeastConnections || got.ProxyProtocol != 2 {
			t.Errorf("list %d: target %+v", l, got)
		}
		e := mapped.Endpoints(l)
		if len(e) != 1 || e[0].Addr() != netip.MustParseAddr("192.168.10.11") || e[0].Port() != got.Listen.Port() || e[0].Local != (l == plan.ListLocal) {
			t.Errorf("list %d: rules lead to %+v, the proxy listens at %s", l, e, got.Listen)
		}
	}
}

// A client outside that came by the list of all nodes does not stay there when policy Local holds it to this node's: its
// entry of connection tracking leads to the other list's port now.
func TestPolicyMovesClientsOfUDP(t *testing.T) {
	w := newWorld(t, DefaultOptions())
	w.update(service("dns", 1, model.UDP, []int{5, -6}))
	id := idOf("dns", model.UDP)
	flow := func(client, to string) flows.Flow {
		return flows.Flow{
			Client: netip.MustParseAddrPort(client), To: netip.MustParseAddrPort(to), Server: w.rules.mapped.Ports[id].Cluster[0].AddrPort,
		}
	}
	outside, pod := flow("203.0.113.77:4000", "192.168.10.11:30001"), flow("10.244.0.9:4000", "10.96.0.1:80")
	want := func(f flows.Flow, want flows.Reason) {
		t.Helper()
		if got := new(flows.History).Stale(w.rules.mapped, f); got != want {
			t.Errorf("%v: %q, want %q", f, got, want)
		}
	}
	want(outside, flows.Fresh)
	want(pod, flows.Fresh)
	w.update(service("dns", 1, model.UDP, []int{5, -6}, local))
	want(outside, flows.EndpointGone)
	want(pod, flows.Fresh)
}

// A node port that comes later has precedence: the list of whoever had that port moves.
func TestListsMakeRoomForNodePorts(t *testing.T) {
	w := newWorld(t, DefaultOptions())
	w.update(service("web", 1, model.TCP, []int{5}))
	w.apply(backend.Request{})
	k := relay.Key{Port: idOf("web", model.TCP), List: plan.ListCluster}
	had := w.proxy.targets[k].Listen.Port()
	w.inner.led = nil // for the moment until the rules are written, they lead to a port that moves
	w.update(service("probe", 2, model.TCP, []int{5}, local, func(s *model.Service) {
		s.Type, s.HealthCheckNodePort = model.LoadBalancer, had
	}))
	w.apply(backend.Request{})
	if got := w.proxy.targets[k].Listen.Port(); got == had {
		t.Errorf("web's list has port %d still, which is that of a health check", got)
	}
}

func TestNodeIP(t *testing.T) {
	for name, tt := range map[string]struct {
		primary, want string
		addresses     []string
	}{
		"its own":         {"192.168.10.11", "192.168.10.11", []string{"172.20.0.11", "192.168.10.11"}},
		"not here":        {"203.0.113.9", "172.20.0.11", []string{"169.254.20.10", "172.20.0.11"}},
		"nothing known":   {"192.168.10.11", "192.168.10.11", nil},
		"none of IPv4":    {"", "", []string{"fd00:10::11"}},
		"of one link all": {"", "", []string{"127.0.0.1", "169.254.20.10"}},
	} {
		n := plan.Node{Addresses: addrs(tt.addresses...)}
		want := netip.Addr{}
		if tt.primary != "" {
			n.Primary[model.IPv4] = netip.MustParseAddr(tt.primary)
		}
		if tt.want != "" {
			want = netip.MustParseAddr(tt.want)
		}
		if got := nodeIP(&n, model.IPv4); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
