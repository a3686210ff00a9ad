package ipvs_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/backend/nftables"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/sample"
)

func scheduler(name string) func(*model.Service) {
	return func(s *model.Service) { s.Scheduler = name }
}

// TestSchedulers: real connections are spread as the schedulers' names say.
func TestSchedulers(t *testing.T) {
	s := newSite(t, web(scheduler("rr"), 5, 6, 7))
	for e, n := range s.spread(30).Endpoints {
		if n != 10 {
			t.Errorf("rr: %s got %d of 30, want 10", e, n)
		}
	}

	s.change(web(func(s *model.Service) {
		s.Scheduler = "wrr"
		s.Weights = []model.Weight{{Address: netip.MustParseAddr("10.244.1.5"), Value: 3}}
	}, 5, 6))
	if got := s.spread(40).Endpoints; got[pod(5)] != 30 || got[pod(6)] != 10 {
		t.Errorf("wrr with weights 3 and 1: %v, want 30 and 10", got)
	}

	s.change(web(scheduler("sh"), 5, 6, 7))
	if got := s.spread(10).Endpoints; len(got) != 1 {
		t.Errorf("sh: one client got %v, want one endpoint", got)
	}
	seen := map[netip.AddrPort]bool{}
	for i := range 40 {
		from := netip.AddrFrom4([4]byte{10, 244, 1, byte(100 + i)}).String()
		o, err := s.Host("pods-a").Dial(s.dial(from, webIP))
		must(t, err)
		seen[o.Endpoint] = true
	}
	if len(seen) != 3 {
		t.Errorf("sh: 40 clients got %v, want all endpoints", seen)
	}

	s.change(web(scheduler("lc"), 5))
	var busy []*lab.Conn
	for range 5 {
		busy = append(busy, s.connect())
	}
	s.change(web(scheduler("lc"), 5, 6))
	for range 4 {
		if got := s.spread(1).Endpoints; got[pod(6)] != 1 {
			t.Errorf("lc: %v, want the endpoint without connections", got)
		}
	}
	for _, c := range busy {
		must(t, c.Close())
	}
}

// TestAffinity: a client keeps its endpoint, and gets another when that one drains.
func TestAffinity(t *testing.T) {
	affine := func(s *model.Service) { s.Affinity = time.Hour }
	s := newSite(t, web(affine, 5, 6, 7))
	got := s.spread(10).Endpoints
	if len(got) != 1 {
		t.Fatalf("one client got %v", got)
	}
	open := s.connect()
	var rest []byte
	for _, e := range []byte{5, 6, 7} {
		if got[pod(e)] == 0 {
			rest = append(rest, e)
		}
	}
	s.change(web(affine, rest...))
	if again := s.spread(10).Endpoints; len(again) != 1 || again[pod(rest[0])]+again[pod(rest[1])] != 10 {
		t.Errorf("the client got %v, want one of %v", again, rest)
	}
	must(t, open.Echo("still there?"))
}

// TestRollingUpdate: while endpoints come and go, and the process is killed and comes back, no connection fails, neither
// new ones nor one that stays open.
func TestRollingUpdate(t *testing.T) {
	for _, name := range []string{"rr", "sh", "mh", "lc"} {
		s := newSite(t, web(scheduler(name), 5, 6, 7))
		load := s.Host("pods-a").Load(s.dial("10.244.1.50", webIP), time.Millisecond)
		var open []*lab.Conn
		for round := range 40 {
			first := byte(5 + round)
			s.change(web(scheduler(name), first, first+1, first+2))
			if round < 5 {
				open = append(open, s.connect())
			}
			if round%10 == 9 {
				s.restart()
				s.apply(backend.Request{})
			}
			if round%7 == 6 {
				s.apply(backend.Request{Recheck: true}) // takes away what has drained
			}
		}
		tally, err := load.Stop()
		if err != nil || tally.Total == 0 || tally.Forwarded() != tally.Total {
			t.Errorf("%s: %d connections, %v, error %v", name, tally.Total, tally.Failures, err)
		}
		t.Logf("%s: %d connections to %d endpoints", name, tally.Total, len(tally.Endpoints))
		for _, c := range open {
			if err := c.Echo("still there?"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			must(t, c.Close())
		}
		s.cleanup()
	}
}

// cleanup ends the mode, so that a test can begin anew.
func (s *site) cleanup() {
	s.Helper()
	must(s.T, s.Node().Do(func() error { return s.backend.Cleanup(s.Context()) }))
	if left := s.sh("ipvsadm -S -n; ip -o link | grep kube-ipvs0; true"); left != "" {
		s.Errorf("left behind: %s", left)
	}
}

// TestRestart: a process that was killed, and comes back, writes nothing: weights, what drains, and connections are as
// they were.
func TestRestart(t *testing.T) {
	weighted := func(s *model.Service) {
		s.Weights = []model.Weight{{Address: netip.MustParseAddr("10.244.1.5"), Value: 3}}
	}
	s := newSite(t, web(weighted, 5, 6, 7))
	var open []*lab.Conn
	for range 5 {
		open = append(open, s.connect())
	}
	s.change(web(weighted, 5, 6)) // the last one has a connection and drains
	before := s.sh("ipvsadm -S -n; ipvsadm -L -n; ip address show dev kube-ipvs0")
	if !strings.Contains(before, "-r 10.244.1.7:8080 -m -w 0") {
		t.Fatalf("nothing drains:\n%s", before)
	}
	for range 2 {
		s.restart()
		if r := s.apply(backend.Request{}); r.Written != 0 {
			t.Errorf("a restart wrote %d", r.Written)
		}
	}
	if after := s.sh("ipvsadm -S -n; ipvsadm -L -n; ip address show dev kube-ipvs0"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	for _, c := range open {
		must(t, c.Echo("still there?"))
	}
}

// TestServiceGoes: open connections outlive their Service, new ones are refused, and at last there is nothing left.
func TestServiceGoes(t *testing.T) {
	s := newSite(t, web(nil, 5))
	open := s.connect()
	s.change(noWeb())
	must(t, open.Echo("still there?"))
	for range 2 {
		o, err := s.Host("pods-a").Dial(s.dial("10.244.1.50", webIP))
		must(t, err)
		if o.Action != plan.Reject {
			t.Errorf("a new connection: %s, want it refused", o)
		}
		s.restart()
		s.apply(backend.Request{})
		must(t, open.Echo("still there?"))
	}
	must(t, open.Close())
	s.sh("ipvsadm --set 1 1 1") // so that the end need not be waited for
	s.settle()
	if left := s.sh("ipvsadm -S -n; ip -o address show dev kube-ipvs0"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// mostLooks is how often, ten times a second, something is looked at that ends with the last connection. ipvs takes what
// another mode leads from the same client, port and endpoint for a connection that it remembers, and goes on to remember it
// for two minutes.
const mostLooks = 1500

// settle applies until nothing drains any more.
func (s *site) settle() {
	s.Helper()
	for range mostLooks {
		if s.apply(backend.Request{Recheck: true}); !strings.Contains(s.sh("ipvsadm -S -n"), "-w 0") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Fatalf("something drains for too long:\n%s", s.sh("ipvsadm -L -n; ipvsadm -L -n -c; cat /proc/net/nf_conntrack"))
}

// TestUDP: a flow to an endpoint that is gone goes to another one, and not nowhere: the entry of ipvs goes with the
// destination, and that of connection tracking with it.
func TestUDP(t *testing.T) {
	udp := func(s *model.Service) { s.Ports[0].Protocol = model.UDP }
	s := newSite(t, web(udp, 5))
	d := s.dial("10.244.1.50", webIP)
	d.Protocol, d.FromPort = model.UDP, 4444
	o, err := s.Host("pods-a").Dial(d)
	must(t, err)
	if o.Endpoint != pod(5) {
		t.Fatalf("%s, want %s", o, pod(5))
	}
	s.change(web(udp, 6))
	if _, err = s.Host("pods-a").Dial(d); err != nil { // may be the one that ends the flow
		t.Fatal(err)
	}
	o, err = s.Host("pods-a").Dial(d)
	must(t, err)
	if o.Endpoint != pod(6) {
		t.Errorf("%s, want %s\n%s", o, pod(6), s.sh("ipvsadm -L -n -c"))
	}
}

// TestOutside: with externalTrafficPolicy Local, clients outside get this node's endpoints and are seen there as
// themselves, by way of a mark; pods get all endpoints.
func TestOutside(t *testing.T) {
	d := web(func(s *model.Service) {
		s.Type, s.Ports[0].NodePort, s.ExternalPolicy = model.LoadBalancer, 30080, model.PolicyLocal
		s.LoadBalancerIPs = sample.Addrs("192.0.2.1")
	}, 5)
	for _, sl := range d.Slices {
		sl.Endpoints = append(sl.Endpoints, model.Endpoint{Address: netip.MustParseAddr("10.244.2.6"), Node: "node-b", Ready: true, Serving: true})
	}
	s := newSite(t, d)
	for _, to := range []string{"192.0.2.1:80", "192.168.10.11:30080"} {
		tally, err := s.Host("clients").Spread(s.dial("203.0.113.5", to), 10)
		must(t, err)
		if tally.Endpoints[pod(5)] != 10 || tally.Peers[netip.MustParseAddr("203.0.113.5")] != 10 {
			t.Errorf("%s from outside: %v, seen as %v; %v\n%s", to, tally.Endpoints, tally.Peers, tally.Failures, s.sh("ipvsadm -L -n --stats"))
		}
		tally, err = s.Host("pods-a").Spread(s.dial("10.244.1.50", to), 10)
		must(t, err)
		if len(tally.Endpoints) != 2 || tally.Forwarded() != 10 {
			t.Errorf("%s from a pod: %v; %v", to, tally.Endpoints, tally.Failures)
		}
		tally, err = s.Node().Spread(lab.Dial{To: netip.MustParseAddrPort(to), Protocol: model.TCP}, 10)
		must(t, err)
		if len(tally.Endpoints) != 2 || tally.Forwarded() != 10 {
			t.Errorf("%s from the node: %v; %v", to, tally.Endpoints, tally.Failures)
		}
	}
	s.restart()
	if r := s.apply(backend.Request{}); r.Written != 0 {
		t.Errorf("a restart wrote %d", r.Written)
	}
	id := plan.PortID{Service: model.Name{Namespace: "default", Name: "web"}, Port: "http", Protocol: model.TCP}
	var counts map[plan.PortID]uint64
	for range mostLooks { // the kernel adds up every other second
		must(t, s.Node().Do(func() (err error) { counts, err = s.backend.Connections(t.Context()); return err }))
		if counts[id] == 60 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("counted %v, want 60", counts)
}

// TestNodeReaches: processes of the node itself reach endpoints everywhere, and other ports of a cluster IP are refused
// though the address is the node's: nobody listens there by accident.
func TestNodeReaches(t *testing.T) {
	d := web(nil, 5)
	for _, sl := range d.Slices {
		sl.Endpoints = append(sl.Endpoints, model.Endpoint{Address: netip.MustParseAddr("10.244.2.6"), Node: "node-b", Ready: true, Serving: true})
	}
	s := newSite(t, d)
	tally, err := s.Node().Spread(lab.Dial{To: netip.MustParseAddrPort(webIP), Protocol: model.TCP}, 10)
	must(t, err)
	if len(tally.Endpoints) != 2 || tally.Forwarded() != 10 {
		t.Errorf("from the node: %v; %v", tally.Endpoints, tally.Failures)
	}
	_, err = s.Node().ServeAll(model.TCP, 22)
	must(t, err)
	for _, host := range []string{"pods-a", "clients", "node-a"} {
		o, err := s.Host(host).Dial(lab.Dial{To: netip.MustParseAddrPort("10.96.0.10:22"), Protocol: model.TCP})
		must(t, err)
		if o.Action != plan.Reject {
			t.Errorf("%s reaches what listens on the node by a cluster IP: %s", host, o)
		}
	}
	s.sh("ping -c 1 -W 2 10.96.0.10")
}

// TestForeign: virtual servers of others stay, whatever happens.
func TestForeign(t *testing.T) {
	s := newSite(t, web(nil, 5))
	s.sh("ipvsadm -A -t 192.168.10.11:443 -s wlc; ipvsadm -a -t 192.168.10.11:443 -r 10.244.1.9:443 -g -w 7; ipvsadm -A -f 9 -s rr")
	foreign := s.sh("ipvsadm -S -n | grep -v 10.96")
	for range 2 {
		s.apply(backend.Request{Recheck: true})
		s.restart()
	}
	s.apply(backend.Request{})
	must(t, s.Node().Do(func() error { return s.backend.Cleanup(t.Context()) }))
	if got := s.sh("ipvsadm -S -n"); got != foreign {
		t.Errorf("left:\n%swant\n%s", got, foreign)
	}
}

// TestRetire: another mode takes over on the running node. Open connections go on, new ones are never refused, and the
// virtual servers go when the connections have.
func TestRetire(t *testing.T) {
	s := newSite(t, web(nil, 5, 6))
	open := s.connect()
	load := s.Host("pods-a").Load(s.dial("10.244.1.50", webIP), time.Millisecond)
	next := nftables.New(nftables.DefaultOptions(), nftables.Deps{})
	defer func() { must(t, next.Close()) }()
	retire := func() (left int) {
		must(t, s.Node().Do(func() (err error) { left, err = s.backend.Retire(context.Background()); return err }))
		return left
	}
	must(t, s.Node().Do(func() error {
		_, err := next.Apply(t.Context(), next.Compile(s.planner.Plan()), backend.Request{})
		return err
	}))
	for range 3 {
		if left := retire(); left != 1 {
			t.Errorf("%d virtual servers left, want 1", left)
		}
		must(t, open.Echo("still there?"))
	}
	tally, err := load.Stop()
	if err != nil || tally.Total == 0 || tally.Forwarded() != tally.Total {
		t.Errorf("%d connections, %v, error %v", tally.Total, tally.Failures, err)
	}
	must(t, open.Close())
	s.sh("ipvsadm --set 1 1 1")
	for range mostLooks {
		if retire() == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if left := s.sh("ipvsadm -S -n; ip -o link | grep kube-ipvs0; true"); left != "" {
		t.Errorf("left behind: %s\n%s", left, s.sh("ipvsadm -L -n -c"))
	}
	t.Logf("%d connections", tally.Total)
}
