package ipvs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/kernel/ipvs"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

func TestApplyWritesOnce(t *testing.T) {
	w := newRig(t, Options{}, web(5, 6))
	if r := w.apply(backend.Request{}); r.Written != 5 {
		t.Errorf("%d written, want the device, its address, a server and two destinations", r.Written)
	}
	w.want("-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 1", "-t 10.96.0.10:80 -r 10.244.1.6:8080 -w 1", "10.96.0.10/32")
	for _, again := range []backend.Request{{}, {Recheck: true}} {
		if r := w.apply(again); r.Written != 0 || r.Restored != nil {
			t.Errorf("%+v: %+v", again, r)
		}
	}
	w.restart()
	if r := w.apply(backend.Request{}); r.Written != 0 || r.Former != nil {
		t.Errorf("a restart: %+v", r)
	}
}

// A change costs what changed: the kernel is not even read.
func TestChangeReadsNothing(t *testing.T) {
	w := newRig(t, Options{}, web(5, 6))
	w.apply(backend.Request{})
	var calls []string
	w.fault = func(call string) (error, error) {
		calls = append(calls, call)
		return nil, nil
	}
	w.change(web(5, 6, 7))
	w.apply(backend.Request{})
	if !slices.Equal(calls, []string{"add destination"}) {
		t.Errorf("calls %q", calls)
	}
}

// TestDrain: a destination that goes keeps its connections, and comes back as it was.
func TestDrain(t *testing.T) {
	w := newRig(t, Options{}, web(5, 6))
	w.apply(backend.Request{})
	w.connect("10.244.1.6:8080", 3)
	w.change(web(5))
	w.apply(backend.Request{})
	drained := []string{"-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 1", "-t 10.96.0.10:80 -r 10.244.1.6:8080 -w 0", "10.96.0.10/32"}
	w.want(drained...)
	w.restart() // a process that knows nothing
	w.apply(backend.Request{})
	w.apply(backend.Request{Recheck: true})
	w.want(drained...)

	w.change(web(5, 6))
	w.apply(backend.Request{})
	w.want("-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 1", "-t 10.96.0.10:80 -r 10.244.1.6:8080 -w 1", "10.96.0.10/32")
	if d, _ := w.destination(at(ipvs.TCP, "10.96.0.10:80"), netip.MustParseAddrPort("10.244.1.6:8080")); d.Active != 3 {
		t.Errorf("%d connections, want 3", d.Active)
	}

	w.change(web(5))
	w.apply(backend.Request{})
	w.connect("10.244.1.6:8080", 0)
	if !w.backend.lookAtDraining() {
		t.Error("nobody sees that the connections ended")
	}
	if r := w.apply(backend.Request{}); r.Written != 1 {
		t.Errorf("%+v", r)
	}
	w.want("-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 1", "10.96.0.10/32")
	if w.lost != 0 || w.backend.lookAtDraining() {
		t.Errorf("%d connections lost; draining %v", w.lost, w.backend.draining)
	}
}

// TestServiceGoes: the virtual server and its address stay for the connections there are, and new ones are refused.
func TestServiceGoes(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	var refused []string
	w.inner.applied = func(r *ruleset) (backend.Result, error) {
		refused = nil
		for id, p := range r.ports {
			if id.Service.Namespace == "" && p.Internal[plan.ClientPod].Action == plan.Reject {
				refused = append(refused, p.Frontends[0].Key.String())
			}
		}
		return backend.Result{}, nil
	}
	w.apply(backend.Request{})
	w.connect("10.244.1.5:8080", 1)
	w.change(noWeb())
	for range 2 {
		w.apply(backend.Request{})
		w.want("-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 0", "10.96.0.10/32")
		if !slices.Equal(refused, []string{"10.96.0.10:80/TCP"}) {
			t.Errorf("refused %q", refused)
		}
		w.restart()
	}
	w.connect("10.244.1.5:8080", 0)
	if r := w.apply(backend.Request{Recheck: true}); !slices.Equal(r.Former, []plan.Key{{Addr: netip.MustParseAddr("10.96.0.10"), Protocol: model.TCP, Port: 80}}) {
		t.Errorf("former frontends %v", r.Former)
	}
	w.want()
	if len(refused) != 0 || w.lost != 0 {
		t.Errorf("refused %q, %d lost", refused, w.lost)
	}
}

// TestUDP: a destination goes at once, unless it still serves whom it has.
func TestUDP(t *testing.T) {
	w := newRig(t, Options{}, webWith(udp, 5, 6))
	w.apply(backend.Request{})
	w.connect("10.244.1.6:8080", 9)
	leaving := webWith(udp, 5, 6)
	for _, sl := range leaving.Slices {
		sl.Endpoints[1].Ready, sl.Endpoints[1].Terminating = false, true
	}
	w.change(leaving)
	w.apply(backend.Request{})
	w.want("-u 10.96.0.10:80 -s rr", "-u 10.96.0.10:80 -r 10.244.1.5:8080 -w 1", "-u 10.96.0.10:80 -r 10.244.1.6:8080 -w 0", "10.96.0.10/32")
	w.change(webWith(udp, 5))
	w.apply(backend.Request{})
	w.want("-u 10.96.0.10:80 -s rr", "-u 10.96.0.10:80 -r 10.244.1.5:8080 -w 1", "10.96.0.10/32")
	w.connect("10.244.1.5:8080", 9)
	w.change(noWeb())
	w.apply(backend.Request{})
	w.want()
}

// TestUDPByMark: so does one of clients outside that come by a mark, which the kernel has no protocol of.
func TestUDPByMark(t *testing.T) {
	local := func(endpoints ...byte) model.Delta {
		return webWith(func(s *model.Service) {
			udp(s)
			s.Type, s.ExternalPolicy, s.ExternalIPs = model.NodePort, model.PolicyLocal, sample.Addrs("203.0.113.5")
		}, endpoints...)
	}
	w := newRig(t, Options{}, local(5, 6))
	for _, step := range []struct {
		leaves byte
		to     model.Delta
	}{{6, local(5)}, {5, noWeb()}} {
		w.apply(backend.Request{})
		w.connectByMark(step.leaves, 9)
		w.change(step.to)
		w.apply(backend.Request{Recheck: true})
		leaves := fmt.Sprintf("10.244.1.%d:", step.leaves)
		if got := w.dump(); slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, leaves) }) {
			t.Errorf("%s is left:\n%s", leaves, join(got))
		}
	}
	w.want()
}

// adopting are rules of which the kernel has a mark that they would not choose now.
type adopting struct {
	*rules
	mark uint32
}

func (a adopting) Adopt(context.Context, backend.Ruleset) error {
	for id := range a.marks {
		a.marks[id] = a.mark
	}
	return nil
}

// TestMarksAreAdopted: virtual servers are made and compared by the marks that the kernel's rules lead to.
func TestMarksAreAdopted(t *testing.T) {
	w := newRig(t, Options{}, webWith(func(s *model.Service) {
		s.Type, s.ExternalPolicy, s.ExternalIPs = model.NodePort, model.PolicyLocal, sample.Addrs("203.0.113.5")
	}, 5))
	w.backend.deps.Rules = adopting{w.inner, 9000}
	w.apply(backend.Request{})
	marks := func() (found []uint32) {
		for n := range w.servers {
			if n.Mark != 0 {
				found = append(found, n.Mark)
			}
		}
		return found
	}
	if got := marks(); !slices.Equal(got, []uint32{9000}) {
		t.Errorf("virtual servers have marks %v", got)
	}
	w.inner.marks = map[plan.PortID]uint32{}
	w.restart()
	w.backend.deps.Rules = adopting{w.inner, 9000}
	if lines, err := w.backend.Compare(t.Context(), w.rules); err != nil || len(lines) > 0 {
		t.Errorf("differences %q, %v", lines, err)
	}
}

// connectByMark has an endpoint have so many clients that come by a mark.
func (w *rig) connectByMark(endpoint byte, n uint32) {
	w.Helper()
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 1, endpoint}), 8080)
	for name, s := range w.servers {
		if d := s.destinations[to]; d != nil && name.Mark != 0 {
			d.Inactive = n
			return
		}
	}
	w.Fatalf("no mark leads to %s", to)
}

// TestForeign: what others have stays, also at the node's own addresses; what is taken for ours does not.
func TestForeign(t *testing.T) {
	excluded := netip.MustParsePrefix("10.99.0.0/16")
	w := newRig(t, Options{ExcludeCIDRs: []netip.Prefix{excluded}})
	foreign := []ipvs.Server{
		{Name: at(ipvs.TCP, "192.168.10.11:80"), Scheduler: "wlc"},  // keepalived's
		{Name: at(ipvs.TCP, "203.0.113.1:30080"), Scheduler: "wlc"}, // a node port's number, and not on the device
		{Name: at(ipvs.TCP, "10.99.0.1:80"), Scheduler: "rr"},       // excluded, though on the device
		{Name: ipvs.Name{Addr: netip.IPv4Unspecified(), Mark: 1}, Scheduler: "rr"},
	}
	kubeProxys := []ipvs.Server{
		{Name: at(ipvs.TCP, "10.96.7.7:80"), Scheduler: "rr"},
		{Name: at(ipvs.UDP, "192.168.10.11:30053"), Scheduler: "rr"},
	}
	for _, s := range append(slices.Clone(foreign), kubeProxys...) {
		must(t, w.kernel.Add(s))
		must(t, w.AddDestination(s.Name, ipvs.Destination{AddrPort: netip.MustParseAddrPort("10.244.9.9:80"), Weight: 1}))
	}
	w.servers[foreign[1].Name].destinations[netip.MustParseAddrPort("10.244.9.9:80")].Elsewise = true
	w.links[DeviceName] = map[netip.Prefix]bool{netip.MustParsePrefix("10.96.7.7/32"): true, netip.MustParsePrefix("10.99.0.1/32"): true}
	w.apply(backend.Request{})
	w.apply(backend.Request{Recheck: true}) // those of TCP had to drain first
	check := func() {
		t.Helper()
		for _, s := range foreign {
			if got := w.servers[s.Name]; got == nil || got.Server != s || len(got.destinations) != 1 {
				t.Errorf("%s is %+v", s.Name, got)
			}
		}
		if len(w.servers) != len(foreign) {
			t.Errorf("the kernel has\n%s", join(w.dump()))
		}
	}
	check()
	foreign = append(foreign, ipvs.Server{Name: at(ipvs.TCP, "192.168.10.11:31000"), Scheduler: "wlc"}) // somebody's, later
	must(t, w.kernel.Add(foreign[4]))
	must(t, w.AddDestination(foreign[4].Name, ipvs.Destination{AddrPort: netip.MustParseAddrPort("10.244.9.9:80"), Weight: 1}))
	w.change(web(5))
	w.apply(backend.Request{Recheck: true})
	w.restart()
	w.apply(backend.Request{})
	w.change(noWeb())
	w.apply(backend.Request{})
	w.apply(backend.Request{Recheck: true})
	check()
	if got := w.links[DeviceName]; len(got) != 1 || !got[netip.MustParsePrefix("10.99.0.1/32")] {
		t.Errorf("addresses %v", got)
	}
	must(t, w.backend.Cleanup(t.Context()))
	check()
	if got := w.links[DeviceName]; len(got) != 1 || !got[netip.MustParsePrefix("10.99.0.1/32")] || !w.inner.cleaned {
		t.Errorf("the rules are left, or addresses %v", got)
	}
}

// TestDrift: what others did to ours is undone and told.
func TestDrift(t *testing.T) {
	w := newRig(t, Options{}, web(5, 6))
	w.apply(backend.Request{})
	name := at(ipvs.TCP, "10.96.0.10:80")
	for _, tt := range []struct {
		do   func()
		told string
	}{
		{func() { w.servers[name].Scheduler = "wlc" }, "ipvsadm -E -t 10.96.0.10:80 -s rr"},
		{func() { w.servers[name].Flags = 0 }, "ipvsadm -E -t 10.96.0.10:80 -s rr"},
		{func() { delete(w.servers, name) }, "ipvsadm -A -t 10.96.0.10:80 -s rr"},
		{func() { delete(w.servers[name].destinations, netip.MustParseAddrPort("10.244.1.5:8080")) }, "ipvsadm -a -t 10.96.0.10:80 -r 10.244.1.5:8080 -m -w 1"},
		{func() {
			w.connect("10.244.1.5:8080", 0)
			w.servers[name].destinations[netip.MustParseAddrPort("10.244.1.5:8080")].Weight = 9
		}, "ipvsadm -e -t 10.96.0.10:80 -r 10.244.1.5:8080 -m -w 1"},
		{func() {
			_ = w.AddDestination(name, ipvs.Destination{AddrPort: netip.MustParseAddrPort("203.0.113.1:1"), Weight: 1})
		}, "ipvsadm -e -t 10.96.0.10:80 -r 203.0.113.1:1 -m -w 0"},
		{func() { delete(w.links, DeviceName) }, "ip link add kube-ipvs0 type dummy"},
		{func() { clear(w.links[DeviceName]) }, "ip address add 10.96.0.10/32 dev kube-ipvs0"},
	} {
		tt.do()
		if r := w.apply(backend.Request{Recheck: true}); !slices.Contains(r.Restored, tt.told) {
			t.Errorf("restored %q, want %q", r.Restored, tt.told)
		}
		w.apply(backend.Request{Recheck: true})
		w.want(w.rules.wanted()...)
	}
}

// TestStale: where others changed what a change is about, the kernel is read again at once.
func TestStale(t *testing.T) {
	w := newRig(t, Options{}, web(5, 6))
	w.apply(backend.Request{})
	delete(w.servers, at(ipvs.TCP, "10.96.0.10:80"))
	clear(w.links[DeviceName])
	w.change(web(5))
	w.apply(backend.Request{})
	w.want(w.rules.wanted()...)
}

// TestRefused: what the kernel does not take of one Service port is told, and holds up no other.
func TestRefused(t *testing.T) {
	other := webWith(func(s *model.Service) {
		s.Name.Name, s.ClusterIPs = "aaa", sample.Addrs("10.96.0.1")
	}, 7)
	for _, sl := range other.Slices {
		sl.Service, sl.Name = model.Name{Namespace: "default", Name: "aaa"}, model.Name{Namespace: "default", Name: "aaa"}
	}
	other.Slices = map[model.Name]*model.Slice{{Namespace: "default", Name: "aaa"}: other.Slices[model.Name{Namespace: "default", Name: "web"}]}
	w := newRig(t, Options{}, other, web(5))
	id := plan.PortID{Service: model.Name{Namespace: "default", Name: "aaa"}, Port: "http", Protocol: model.TCP}
	first := true
	w.fault = func(call string) (before, after error) {
		if call == "add server" && first {
			first = false
			return syscall.ENOSPC, nil
		}
		return nil, nil
	}
	r := w.apply(backend.Request{})
	if why := r.Refused[id]; len(r.Refused) != 1 || !errors.Is(why, syscall.ENOSPC) || !strings.HasPrefix(why.Error(), "default/aaa:http: ") {
		t.Errorf("refused %v", r.Refused)
	}
	web := []string{"-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 1", "10.96.0.10/32", "10.96.0.1/32"}
	w.want(web...)
	if r := w.apply(backend.Request{Hold: map[plan.PortID]bool{id: true}}); r.Written != 0 {
		t.Errorf("held: %+v", r)
	}
	w.apply(backend.Request{})
	w.want(append(web, "-t 10.96.0.1:80 -s rr", "-t 10.96.0.1:80 -r 10.244.1.7:8080 -w 1")...)
}

// TestLackingScheduler: the node's takes its place, which is told once.
func TestLackingScheduler(t *testing.T) {
	w := newRig(t, Options{Scheduler: "lc"}, webWith(func(s *model.Service) { s.Scheduler = "nosuch" }, 5))
	w.lacks = []string{"nosuch", "lc"}
	for range 2 {
		if r := w.apply(backend.Request{Recheck: true}); len(r.Refused) != 0 {
			t.Errorf("refused %v", r.Refused)
		}
		w.want("-t 10.96.0.10:80 -s rr", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 1", "10.96.0.10/32")
	}
	if len(w.fallback) != 1 || w.fallback[0].Error() != "this kernel has no scheduler nosuch: rr is used" {
		t.Errorf("told %v", w.fallback)
	}
	w.lacks = nil // somebody installed them
	w.apply(backend.Request{Recheck: true})
	w.want("-t 10.96.0.10:80 -s nosuch", "-t 10.96.0.10:80 -r 10.244.1.5:8080 -w 1", "10.96.0.10/32")
}

// TestRulesFail: nothing goes that the rules in the kernel may still lead to, and all of it later.
func TestRulesFail(t *testing.T) {
	w := newRig(t, Options{}, webWith(udp, 5))
	w.apply(backend.Request{})
	before := w.dump()
	bad := errors.New("no memory")
	works := w.inner.applied
	w.inner.applied = func(*ruleset) (backend.Result, error) {
		return backend.Result{}, &backend.FamilyError{Family: model.IPv4, Err: bad}
	}
	w.change(noWeb())
	_, err := w.backend.Apply(t.Context(), w.rules, backend.Request{})
	if !errors.Is(err, bad) || backend.FailedFamilies(err) != [2]bool{true, false} {
		t.Errorf("error %v", err)
	}
	w.want(before...)
	w.inner.applied = works
	w.apply(backend.Request{})
	w.want()
}

func TestSettings(t *testing.T) {
	w := newRig(t, Options{StrictARP: true, TCPTimeout: time.Hour, UDPTimeout: time.Minute}, web(5))
	w.apply(backend.Request{})
	for key, value := range map[string]string{
		"net.ipv4.vs.conntrack": "1", "net.ipv4.vs.expire_nodest_conn": "1", "net.ipv4.vs.expire_quiescent_template": "1",
		"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.arp_ignore": "1", "net.ipv4.conf.all.arp_announce": "2", "net.ipv4.vs.conn_reuse_mode": "",
	} {
		if w.sysctl[key] != value {
			t.Errorf("%s is %q, want %q", key, w.sysctl[key], value)
		}
	}
	if w.times != (ipvs.Timeouts{TCP: time.Hour, UDP: time.Minute}) || len(w.warned) != 0 {
		t.Errorf("timeouts %+v, warned %v", w.times, w.warned)
	}
	for release, slow := range map[string]bool{"4.0.9": false, "4.1": true, "5.8.18-generic": true, "5.9.0": false, "6.1.0-57-cloud-amd64": false, "strange": false} {
		if reusesSlowly(release) != slow {
			t.Errorf("release %s: want %v", release, slow)
		}
	}
}

// TestReadOnlySettings: the mode works without all but one.
func TestReadOnlySettings(t *testing.T) {
	w := newRig(t, Options{}, web(5))
	w.backend.deps.Sysctl = settings{w.kernel, []string{"net.ipv4.ip_forward"}}
	w.apply(backend.Request{})
	if len(w.warned) != 1 || w.warned[0].Error() != "only connections of this node reach endpoints elsewhere: net.ipv4.ip_forward is read-only" {
		t.Errorf("warned %v", w.warned)
	}
	w.restart()
	w.backend.deps.Sysctl = settings{w.kernel, []string{"net.ipv4.vs.conntrack"}}
	if _, err := w.backend.Apply(t.Context(), w.rules, backend.Request{}); err == nil {
		t.Error("no error without connection tracking")
	}
}

func TestConnections(t *testing.T) {
	w := newRig(t, Options{}, webWith(func(s *model.Service) { s.Type, s.Ports[0].NodePort = model.NodePort, 30080 }, 5))
	if got, err := w.backend.Connections(t.Context()); err != nil || got != nil {
		t.Errorf("%v, %v before anything was written", got, err)
	}
	w.apply(backend.Request{})
	w.servers[at(ipvs.TCP, "10.96.0.10:80")].total = 3
	w.servers[at(ipvs.TCP, "192.168.10.11:30080")].total = 4
	id := plan.PortID{Service: model.Name{Namespace: "default", Name: "web"}, Port: "http", Protocol: model.TCP}
	if got, err := w.backend.Connections(t.Context()); err != nil || len(got) != 1 || got[id] != 7 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestFormer: node ports are told as such.
func TestFormer(t *testing.T) {
	nodePort := func(s *model.Service) {
		udp(s)
		s.Type, s.Ports[0].NodePort = model.NodePort, 30053
	}
	w := newRig(t, Options{}, webWith(nodePort, 5))
	w.apply(backend.Request{})
	w.change(noWeb())
	w.restart()
	got := w.apply(backend.Request{}).Former
	slices.SortFunc(got, func(a, b plan.Key) int { return a.Addr.Compare(b.Addr) })
	want := []plan.Key{plan.NodePortKey(model.IPv4, model.UDP, 30053), {Addr: netip.MustParseAddr("10.96.0.10"), Protocol: model.UDP, Port: 80}}
	if !slices.Equal(got, want) {
		t.Errorf("former frontends %v, want %v", got, want)
	}
	w.want()
}

// counters are rules that count.
type counters struct{ *rules }

func (counters) Packets(context.Context) (backend.Packets, error) {
	n := uint64(7)
	return backend.Packets{Invalid: &n}, nil
}

func (counters) Rules() []backend.TableRules { return []backend.TableRules{{Table: "nat", Held: 3}} }

// TestRulesCount: what the rules beside count is passed on, if they count.
func TestRulesCount(t *testing.T) {
	w := newRig(t, Options{})
	if got, err := w.backend.Packets(t.Context()); err != nil || got != (backend.Packets{}) || w.backend.Rules() != nil {
		t.Errorf("%v, %v, %v of rules that do not count", got, err, w.backend.Rules())
	}
	w.backend.deps.Rules = counters{w.inner}
	if got, err := w.backend.Packets(t.Context()); err != nil || got.Invalid == nil || *got.Invalid != 7 || len(w.backend.Rules()) != 1 {
		t.Errorf("%v, %v, %v", got, err, w.backend.Rules())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
