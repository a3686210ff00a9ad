package localhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

// fake is a proxy that writes down what it listens at. As in the kernel, a place is one Target's.
type fake struct {
	targets map[relay.Key]relay.Target
	taken   map[netip.AddrPort]bool // by somebody else
	calls   int
	drained int // listeners whose connections are to end
}

var errInUse = errors.New("address already in use")

func (f *fake) Put(t relay.Target) error {
	f.calls++
	if f.taken[t.Listen] && f.targets[t.Key].Listen != t.Listen {
		return errInUse
	}
	for k, o := range f.targets {
		if k != t.Key && o.Listen == t.Listen && k.Port.Protocol == t.Port.Protocol {
			return fmt.Errorf("%s is listened at for %s", t.Listen, k)
		}
	}
	f.targets[t.Key] = t
	return nil
}

func (f *fake) Remove(k relay.Key) {
	f.drained++
	f.Close(k)
}

func (f *fake) Close(k relay.Key) {
	f.calls++
	delete(f.targets, k)
}

// at is where the proxy listens: "127.0.0.1:30080/TCP shop/web 10.244.1.5:8080", sorted.
func (f *fake) at() (all []string) {
	for k, t := range f.targets {
		text := fmt.Sprintf("%s/%s %s", t.Listen, k.Port.Protocol, k)
		for _, e := range t.Endpoints {
			text += " " + e.String()
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// world is a Server that follows a plan of Services.
type world struct {
	*testing.T
	*Server
	proxy   *fake
	planner *plan.Planner
	snap    *model.Snapshot
	log     bytes.Buffer
	told    []string
	broken  error
}

func start(t *testing.T, cfg plan.Config) *world {
	w := &world{T: t, proxy: &fake{targets: map[relay.Key]relay.Target{}, taken: map[netip.AddrPort]bool{}}, snap: model.NewSnapshot()}
	cfg.NodeName = "node-a"
	w.planner = plan.NewPlanner(cfg)
	w.Server = New(Config{
		Open: func() (Proxy, error) { return w.proxy, w.broken },
		Log:  slog.New(slog.NewTextHandler(&w.log, nil)),
		Tell: func(service model.Name, reason, note string) {
			w.told = append(w.told, service.String()+" "+reason+": "+note)
		},
	})
	w.services(nil)
	return w
}

// both is the policy that has the proxy serve both families.
var both = plan.Config{LocalhostProxy: true, NodePortAddresses: plan.NodePortAddresses{Localhost: true, Primary: true}}

// services moves to these Services, each with one node port, of both families.
func (w *world) services(numbers map[string]uint16, edit ...func(*model.Service)) {
	next := model.NewSnapshot()
	next.Nodes["node-a"] = &model.Node{Name: "node-a", InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}}
	for i, name := range slices.Sorted(maps.Keys(numbers)) {
		s := &model.Service{
			Name: model.Name{Namespace: "shop", Name: name}, Type: model.NodePort,
			ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 0, byte(i + 1)}), netip.MustParseAddr(fmt.Sprintf("fd00:96::%d", i+1))},
			Ports:      []model.ServicePort{{Protocol: model.TCP, Port: 80, NodePort: numbers[name]}},
		}
		for _, e := range edit {
			e(s)
		}
		next.Services[s.Name] = s
		for f, addr := range []string{"10.244.1.5", "fd00:244::5"} {
			slice := &model.Slice{
				Name: model.Name{Namespace: "shop", Name: fmt.Sprint(name, f)}, Service: s.Name, Family: model.Family(f),
				Ports: []model.SlicePort{{Protocol: s.Ports[0].Protocol, Port: 8080}},
			}
			slice.Endpoints = []model.Endpoint{{Address: netip.MustParseAddr(addr), Node: "node-b", Ready: true, Serving: true}}
			next.Slices[slice.Name] = slice
		}
	}
	changes := w.planner.Update(model.Diff(w.snap, next))
	w.snap = next
	w.Update(w.planner.Plan(), changes)
}

func (w *world) policy(c plan.Config) {
	c.NodeName = "node-a"
	w.Update(w.planner.Plan(), w.planner.SetConfig(c))
}

func (w *world) want(listeners ...string) {
	w.Helper()
	if diff := cmp.Diff(listeners, w.proxy.at()); diff != "" {
		w.Errorf("listeners (-want +got):\n%s", diff)
	}
}

const (
	web4 = "127.0.0.1:30080/TCP shop/web direct 10.244.1.5:8080"
	web6 = "[::1]:30080/TCP shop/web direct [fd00:244::5]:8080"
)

var web = map[string]uint16{"web": 30080}

func TestFollowsThePlan(t *testing.T) {
	w := start(t, both)
	w.services(web)
	w.want(web4, web6)
	calls := w.proxy.calls
	w.services(map[string]uint16{"web": 30080, "zoo": 30081})
	if more := w.proxy.calls - calls; more != 2 {
		t.Errorf("one more Service took %d calls of the proxy, want 2", more)
	}
	w.services(map[string]uint16{"web": 30081, "zoo": 30080}) // they change places
	w.want("127.0.0.1:30080/TCP shop/zoo direct 10.244.1.5:8080", "127.0.0.1:30081/TCP shop/web direct 10.244.1.5:8080",
		"[::1]:30080/TCP shop/zoo direct [fd00:244::5]:8080", "[::1]:30081/TCP shop/web direct [fd00:244::5]:8080")
	w.services(nil)
	w.want()
	if w.log.Len() > 0 {
		t.Errorf("it complained: %s", &w.log)
	}
}

// Clients are processes of this node: externalTrafficPolicy Local holds nobody here to endpoints of this node.
func TestPolicyLocal(t *testing.T) {
	w := start(t, both)
	w.services(web, func(s *model.Service) { s.ExternalPolicy = model.PolicyLocal })
	w.want(web4, web6)
}

// Who is refused finds nobody, and neither does SCTP.
func TestNotListenedAt(t *testing.T) {
	w := start(t, both)
	w.services(web, func(s *model.Service) { s.Ports[0].Protocol = model.SCTP })
	w.want()
	w.services(web)
	w.want(web4, web6)
	next := w.snap.Clone()
	clear(next.Slices)
	w.Update(w.planner.Plan(), w.planner.Update(model.Diff(w.snap, next)))
	w.want()
	if w.proxy.calls != 4 || w.log.Len() > 0 {
		t.Errorf("%d calls of the proxy, want 4; it said %q", w.proxy.calls, &w.log)
	}
}

// Only a list that speaks of loopback itself has it served, each family by itself.
func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		list plan.NodePortAddresses
		want []string
	}{
		{plan.NodePortAddresses{Localhost: true}, []string{web4, web6}},
		{plan.NodePortAddresses{Localhost: true, All: true}, []string{web4, web6}},
		{plan.NodePortAddresses{Prefixes: prefixes("127.0.0.0/8")}, []string{web4}},
		{plan.NodePortAddresses{Prefixes: prefixes("::1/128", "192.0.2.0/24")}, []string{web6}},
		{plan.NodePortAddresses{Prefixes: prefixes("0.0.0.0/0", "::/0")}, nil},
		{plan.NodePortAddresses{All: true}, nil},
		{plan.NodePortAddresses{}, nil},
	} {
		t.Run(fmt.Sprint(tt.list), func(t *testing.T) {
			w := start(t, plan.Config{LocalhostProxy: true, NodePortAddresses: tt.list})
			w.services(web)
			w.want(tt.want...)
		})
	}
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// Where rules take over, the proxy listens until they stand, and follows Services until then.
func TestRulesTakeOver(t *testing.T) {
	w := start(t, both)
	w.services(web)
	w.policy(plan.Config{LocalhostNodePorts: true, NodePortAddresses: both.NodePortAddresses})
	w.want(web4, web6)
	w.services(map[string]uint16{"web": 30081})
	w.want("127.0.0.1:30081/TCP shop/web direct 10.244.1.5:8080", "[::1]:30081/TCP shop/web direct [fd00:244::5]:8080")
	w.Settled()
	w.want()
	w.services(web)
	w.want()
	w.policy(both)
	w.Settled()
	w.want(web4, web6)
	w.policy(plan.Config{LocalhostProxy: true, NodePortAddresses: plan.NodePortAddresses{Prefixes: prefixes("::1/128")}})
	w.policy(both) // before rules stood
	w.Settled()
	w.want(web4, web6)
	if w.proxy.drained != 0 {
		w.Error("connections of a Service that is there still are to end")
	}
	w.services(nil)
	if w.want(); w.proxy.drained != 2 {
		w.Errorf("connections of a Service that is gone: %d listeners are drained", w.proxy.drained)
	}
}

func TestAnswersAreThoseOfRules(t *testing.T) {
	p := &plan.Port{
		Frontends: []plan.Frontend{{Kind: plan.ClusterIP}, {Kind: plan.NodePort, Key: plan.Key{Port: 30080}}}, Affinity: 5, ProxyProtocol: 2,
		Cluster: []plan.Endpoint{{Weight: 1}}, Draining: []plan.Endpoint{{Weight: 2}},
	}
	p.External[plan.ClientHost] = plan.Route{Action: plan.Forward, List: plan.ListCluster}
	got, ok := target(p)
	want := relay.Target{
		Key:    relay.Key{List: plan.ListCluster, Direct: true},
		Listen: netip.MustParseAddrPort("127.0.0.1:30080"), Endpoints: p.Cluster, Draining: p.Draining, Balancing: model.BalanceRandom, Affinity: 5,
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" || !ok {
		t.Errorf("%t, target (-want +got):\n%s", ok, diff)
	}
	p.Balancing = model.BalanceRoundRobin
	if got, _ := target(p); got.Balancing != model.BalanceRoundRobin {
		t.Errorf("balanced %v, want as it is asked for", got.Balancing)
	}
}

// What cannot be listened at is told once, tried again, and holds up nobody else.
func TestFailures(t *testing.T) {
	w := start(t, both)
	w.proxy.taken[netip.MustParseAddrPort("127.0.0.1:30080")] = true
	w.services(web)
	w.want(web6)
	w.retry()
	w.services(web, func(s *model.Service) { s.Affinity = 1 })
	if diff := cmp.Diff([]string{
		"shop/web FailedToListenAtLocalhost: node port 30080 does not answer at 127.0.0.1 of the node: address already in use",
	}, w.told); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(w.log.String(), "level=ERROR"); n != 1 || !strings.Contains(w.log.String(), "service=shop/web") {
		t.Errorf("%d errors, want 1 of the Service:\n%s", n, &w.log)
	}
	n := w.Numbers()
	if *n[model.IPv4] != (Numbers{0, 3}) || *n[model.IPv6] != (Numbers{1, 0}) {
		t.Errorf("counted %+v and %+v", *n[model.IPv4], *n[model.IPv6])
	}
	clear(w.proxy.taken)
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithTimeout(t.Context(), retryEvery+time.Second)
		defer end()
		w.Server.Run(ctx)
	})
	w.want(web4, web6)
	if !strings.Contains(w.log.String(), "answers at the loopback address now") {
		t.Errorf("the end of it is not told:\n%s", &w.log)
	}
	w.services(nil)
	w.want()
}

func TestProxyThatCannotBegin(t *testing.T) {
	w := start(t, both)
	w.broken = errors.New("no files")
	w.services(web)
	w.services(nil) // nothing is to end
	w.services(web)
	if len(w.told) != 4 { // once for each family, and again when the Service comes again
		t.Errorf("told %q", w.told)
	}
	w.broken = nil
	w.retry()
	w.want(web4, web6)
}

func TestNumbersOfWhatIsNotServed(t *testing.T) {
	w := start(t, plan.Config{})
	w.services(web)
	if n := w.Numbers(); n != [2]*Numbers{} {
		t.Errorf("counted %v", n)
	}
}
