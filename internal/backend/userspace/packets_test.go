package userspace_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/backend"
	"sluice/internal/config"
	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
	"sluice/internal/testkit/sample"
	"sluice/internal/testkit/scenario"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// overBoth runs a test over each inner mode.
func overBoth(t *testing.T, test func(*testing.T, *rig)) {
	t.Helper()
	all := scenario.Modes()
	over := []scenario.Mode{
		all[slices.IndexFunc(all, func(m scenario.Mode) bool { return m.Name == config.ModeUserspace })],
		scenario.UserspaceOverIPTables(),
	}
	for _, m := range over {
		t.Run(m.Name, func(t *testing.T) { test(t, newRig(t, m)) })
	}
}

// rig is a lab whose node is kept as a plan says.
type rig struct {
	*testing.T
	*lab.Lab
	mode    scenario.Mode
	planner *plan.Planner
	backend backend.Backend
	rules   backend.Ruleset
}

// newRig is for the reference lab, whose node checks by which interface packets come in. Those of its pods have no IPv4
// address.
func newRig(t *testing.T, m scenario.Mode) *rig {
	t.Helper()
	r := &rig{T: t, Lab: scenario.Up(t, lab.Reference()), mode: m, planner: newPlanner()}
	r.run(r.Node(), "sysctl", "-q", "-w", "net.ipv4.conf.all.rp_filter=1")
	err := r.Node().Do(func() (err error) {
		r.backend, err = m.InKernel(t, r.Node())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.rules = r.backend.Compile(r.planner.Plan())
	return r
}

// newPlanner plans for node-a of the reference lab.
func newPlanner() *plan.Planner {
	p := plan.NewPlanner(plan.Config{
		NodeName: "node-a", ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/56")},
		LocalhostNodePorts: true,
	})
	p.SetHost(plan.Host{Addresses: sample.Addrs("192.168.10.11", "fd00:10::11")})
	p.Update(model.Delta{Nodes: map[string]*model.Node{
		"node-a": {Name: "node-a", InternalIPs: sample.Addrs("192.168.10.11", "fd00:10::11")},
	}})
	return p
}

// change brings the node up to date with changed objects.
func (r *rig) change(d model.Delta) {
	r.Helper()
	c := r.planner.Update(d)
	err := r.Node().Do(func() error {
		r.rules.Update(r.planner.Plan(), c)
		res, err := r.backend.Apply(r.Context(), r.rules, backend.Request{})
		if err == nil && len(res.Refused) > 0 {
			err = fmt.Errorf("refused: %v", res.Refused)
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) run(h *lab.Host, program string, args ...string) string {
	r.Helper()
	out, err := h.Command(r.Context(), program, args...).CombinedOutput()
	if err != nil {
		r.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

var (
	frontend = netip.MustParseAddrPort("10.96.0.1:80")
	pod      = netip.MustParseAddr("10.244.1.50")
	outside  = netip.MustParseAddr("203.0.113.77")
)

// service is default/web at 10.96.0.1:80 and node port 30080.
func service(protocol model.Protocol, port uint16, endpoints []string, edit ...func(*model.Service)) model.Delta {
	name := model.Name{Namespace: "default", Name: "web"}
	s := &model.Service{
		Name: name, Type: model.NodePort, ClusterIPs: sample.Addrs("10.96.0.1"),
		Ports: []model.ServicePort{{Protocol: protocol, Port: 80, NodePort: 30080}},
	}
	for _, f := range edit {
		f(s)
	}
	sl := &model.Slice{Name: name, Service: name, Ports: []model.SlicePort{{Protocol: protocol, Port: port}}}
	for _, a := range sample.Addrs(endpoints...) {
		sl.Endpoints = append(sl.Endpoints, model.Endpoint{Address: a, Node: "node-a", Ready: true, Serving: true})
	}
	return model.Delta{Services: map[model.Name]*model.Service{name: s}, Slices: map[model.Name]*model.Slice{name: sl}}
}

func serve(t testing.TB, h *lab.Host, protocol model.Protocol, at ...string) {
	t.Helper()
	var all []netip.AddrPort
	for _, a := range at {
		all = append(all, netip.MustParseAddrPort(a))
	}
	if _, err := h.Serve(protocol, all...); err != nil {
		t.Fatal(err)
	}
}

// spread opens n connections of a pod.
func (r *rig) spread(protocol model.Protocol, n int) lab.Tally {
	r.Helper()
	tally, err := r.Host("pods-a").Spread(lab.Dial{From: pod, To: frontend, Protocol: protocol}, n)
	if err != nil {
		r.Fatal(err)
	}
	return tally
}

// An endpoint where nothing listens is passed over: no client notices.
func TestRefusingEndpointIsPassedOver(t *testing.T) {
	overBoth(t, func(t *testing.T, r *rig) {
		serve(t, r.Host("pods-a"), model.TCP, "10.244.1.5:8080")
		r.change(service(model.TCP, 8080, []string{"10.244.1.5", "10.244.1.6"}))
		if got := r.spread(model.TCP, 20); got.Endpoints[netip.MustParseAddrPort("10.244.1.5:8080")] != 20 {
			t.Errorf("%+v, want all at the endpoint that is there", got)
		}
	})
}

// proxyPort is where the first list is listened for.
func (r *rig) proxyPort() uint16 {
	r.Helper()
	p, _ := r.rules.(backend.Leader).Leads()
	for _, port := range p.Ports {
		return port.Cluster[0].Port()
	}
	r.Fatal("there is no Service port")
	return 0
}

// The proxy's port is no way to a Service for whoever asks for it directly.
func TestProxyPortIsNoFrontend(t *testing.T) {
	for _, protocol := range []model.Protocol{model.TCP, model.UDP} {
		t.Run(protocol.String(), func(t *testing.T) {
			overBoth(t, func(t *testing.T, r *rig) {
				serve(t, r.Host("pods-a"), protocol, "10.244.1.5:8080")
				r.change(service(protocol, 8080, []string{"10.244.1.5"}))
				for _, from := range []struct {
					host *lab.Host
					addr netip.Addr
				}{{r.Host("clients"), outside}, {r.Host("pods-a"), pod}, {r.Node(), netip.MustParseAddr("192.168.10.11")}} {
					d := lab.Dial{
						From: from.addr, To: netip.AddrPortFrom(netip.MustParseAddr("192.168.10.11"), r.proxyPort()), Protocol: protocol,
					}
					if o, err := from.host.Dial(d); err != nil || o.Action == plan.Forward {
						t.Errorf("from %s: %s, %v; want no answer of an endpoint", from.addr, o, err)
					}
				}
				if got := r.spread(protocol, 3); got.Forwarded() != 3 {
					t.Errorf("the Service itself: %+v", got)
				}
			})
		})
	}
}

// Another program's port is left to it.
func TestPortOfAnotherProgram(t *testing.T) {
	for _, protocol := range []model.Protocol{model.TCP, model.UDP} {
		t.Run(protocol.String(), func(t *testing.T) {
			overBoth(t, func(t *testing.T, r *rig) {
				serve(t, r.Host("pods-a"), protocol, "10.244.1.5:8080")
				d := service(protocol, 8080, []string{"10.244.1.5"})
				r.rules.Update(r.planner.Plan(), r.planner.Update(d))
				first := r.proxyPort()
				if _, err := r.Node().ServeAll(protocol, first); err != nil {
					t.Fatal(err)
				}
				r.change(model.Delta{})
				if got := r.spread(protocol, 3); got.Forwarded() != 3 || r.proxyPort() == first {
					t.Errorf("at port %d, where another program had %d: %+v", r.proxyPort(), first, got)
				}
			})
		})
	}
}

// tellHeader serves at an endpoint that answers with the first line it gets.
func tellHeader(t *testing.T, h *lab.Host, at string) {
	t.Helper()
	var l net.Listener
	if err := h.Do(func() (err error) { l, err = net.Listen("tcp", at); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n') // what is missing shows in the answer
			_, _ = io.WriteString(c, line)
			_ = c.Close()
		}
	}()
}

// ask returns the first line of an answer.
func ask(h *lab.Host, from netip.Addr, to netip.AddrPort) (line string, err error) {
	err = h.Do(func() error {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), Timeout: 3 * time.Second}
		c, err := d.Dial("tcp", to.String())
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		line, err = bufio.NewReader(c).ReadString('\n')
		return err
	})
	return line, err
}

// Whoever asks, by whatever frontend: the proxy knows the client, and tells its endpoint.
func TestProxyProtocolTellsTheClient(t *testing.T) {
	overBoth(t, func(t *testing.T, r *rig) {
		tellHeader(t, r.Host("pods-a"), "10.244.1.5:8080")
		r.change(service(model.TCP, 8080, []string{"10.244.1.5"}, func(s *model.Service) {
			s.ProxyProtocol, s.ExternalPolicy = 1, model.PolicyLocal
		}))
		node, loopback := netip.MustParseAddr("192.168.10.11"), netip.MustParseAddr("127.0.0.1")
		for _, tt := range []struct {
			host *lab.Host
			from netip.Addr
			to   netip.AddrPort
		}{
			{r.Host("pods-a"), pod, frontend},
			{r.Host("pods-a"), netip.MustParseAddr("10.244.1.5"), frontend}, // itself
			{r.Host("pods-a"), pod, netip.AddrPortFrom(node, 30080)},
			{r.Host("clients"), outside, frontend},
			{r.Host("clients"), outside, netip.AddrPortFrom(node, 30080)},
			{r.Node(), node, frontend},
			{r.Node(), node, netip.AddrPortFrom(node, 30080)},
			{r.Node(), loopback, netip.AddrPortFrom(loopback, 30080)},
		} {
			line, err := ask(tt.host, tt.from, tt.to)
			words := strings.Fields(line)
			// The inner mode may give a client at a loopback address the node's, as it does for endpoints elsewhere.
			known := len(words) == 6 && (words[2] == tt.from.String() || tt.from == loopback && words[2] == node.String())
			if err != nil || !known || words[3] != tt.to.Addr().String() || words[5] != strconv.Itoa(int(tt.to.Port())) {
				t.Errorf("%s -> %s: the endpoint was told %q, %v", tt.from, tt.to, line, err)
			}
		}
	})
}

// Clients keep their endpoint, each by its own address.
func TestAffinity(t *testing.T) {
	overBoth(t, func(t *testing.T, r *rig) {
		ends := []string{"10.244.1.5", "10.244.1.6", "10.244.1.7"}
		for _, e := range ends {
			serve(t, r.Host("pods-a"), model.TCP, e+":8080")
		}
		r.change(service(model.TCP, 8080, ends, func(s *model.Service) { s.Affinity = time.Hour }))
		met := map[netip.AddrPort]bool{}
		for i := range 9 {
			from := netip.AddrFrom4([4]byte{203, 0, 113, byte(10 + i)})
			tally, err := r.Host("clients").Spread(lab.Dial{From: from, To: frontend, Protocol: model.TCP}, 4)
			if err != nil || tally.Forwarded() != 4 || len(tally.Endpoints) != 1 {
				t.Errorf("%s: %+v, %v; want one endpoint", from, tally, err)
			}
			for e := range tally.Endpoints {
				met[e] = true
			}
		}
		if len(met) != len(ends) {
			t.Errorf("nine clients met %v, want all endpoints", met)
		}
	})
}

// A client that keeps sending from one socket stays with its endpoint, and meets another one when that is gone, though the
// kernel remembers the client.
func TestSessionsOfUDP(t *testing.T) {
	overBoth(t, func(t *testing.T, r *rig) {
		ends := []string{"10.244.1.5", "10.244.1.6"}
		for _, e := range ends {
			serve(t, r.Host("pods-a"), model.UDP, e+":8080")
		}
		d := lab.Dial{From: outside, FromPort: 40001, To: netip.MustParseAddrPort("192.168.10.11:30080"), Protocol: model.UDP}
		for i, change := range [][]string{ends, ends[:1], ends[1:]} {
			r.change(service(model.UDP, 8080, change))
			tally, err := r.Host("clients").Spread(d, 4)
			if err != nil || tally.Forwarded() != 4 || len(tally.Endpoints) != 1 {
				t.Fatalf("change %d: %+v, %v; want one endpoint", i, tally, err)
			}
			for e := range tally.Endpoints {
				if !slices.Contains(change, e.Addr().String()) {
					t.Errorf("change %d: %s answers, want one of %v", i, e, change)
				}
			}
		}
	})
}

// A Service changes without rest: endpoints, policies, how it is balanced. It has one endpoint always, and no connection
// fails.
func TestChangesUnderLoad(t *testing.T) {
	overBoth(t, func(t *testing.T, r *rig) {
		ends := []string{"10.244.1.5", "10.244.1.6", "10.244.1.7"}
		for _, e := range ends {
			serve(t, r.Host("pods-a"), model.TCP, e+":8080")
		}
		r.change(service(model.TCP, 8080, ends))
		loads := []*lab.Load{
			r.Host("pods-a").Load(lab.Dial{From: pod, To: frontend, Protocol: model.TCP}, time.Millisecond),
			r.Host("clients").Load(lab.Dial{From: outside, To: netip.MustParseAddrPort("192.168.10.11:30080"), Protocol: model.TCP}, time.Millisecond),
		}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		for range 60 {
			shuffled := slices.Clone(ends)
			rnd.Shuffle(len(ends), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			r.change(service(model.TCP, 8080, shuffled[:1+rnd.IntN(3)], func(s *model.Service) {
				s.ExternalPolicy = model.TrafficPolicy(rnd.IntN(2))
				s.Balancing = model.Balancing(rnd.IntN(4))
				s.Affinity = time.Duration(rnd.IntN(2)) * time.Hour
			}))
			time.Sleep(10 * time.Millisecond)
		}
		for _, l := range loads {
			tally, err := l.Stop()
			if err != nil || tally.Total < 10 || tally.Forwarded() != tally.Total {
				t.Errorf("%+v, %v; want no failure", tally, err)
			}
			t.Logf("%d connections", tally.Total)
		}
	})
}

// What is open goes on when the Service goes, and new connections meet nobody.
func TestOpenConnectionsGoOn(t *testing.T) {
	overBoth(t, func(t *testing.T, r *rig) {
		serve(t, r.Host("pods-a"), model.TCP, "10.244.1.5:8080")
		r.change(service(model.TCP, 8080, []string{"10.244.1.5"}))
		c, o, err := r.Host("pods-a").Connect(lab.Dial{From: pod, To: frontend, Protocol: model.TCP})
		if err != nil || c == nil {
			t.Fatal(o, err)
		}
		defer func() { _ = c.Close() }()
		name := model.Name{Namespace: "default", Name: "web"}
		r.change(model.Delta{Services: map[model.Name]*model.Service{name: nil}, Slices: map[model.Name]*model.Slice{name: nil}})
		if err := c.Echo("still there?"); err != nil {
			t.Error(err)
		}
		if got := r.spread(model.TCP, 1); got.Forwarded() != 0 {
			t.Errorf("a new connection: %+v", got)
		}
	})
}

// What is rendered is read by the tools of the inner modes.
func TestToolsReadWhatIsRendered(t *testing.T) {
	tools := map[string][]string{config.ModeUserspace: {"nft", "-c", "-f", "-"}, "userspace over iptables": {"iptables-restore", "--test"}}
	overBoth(t, func(t *testing.T, r *rig) {
		r.planner.Update(service(model.TCP, 8080, []string{"10.244.1.5"}))
		var text bytes.Buffer
		if err := r.mode.Compile(r.planner.Plan()).Render(&text); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(text.String(), "# proxy at 192.168.10.11:") {
			t.Errorf("begins with %.60q", text.String())
		}
		tool := tools[r.mode.Name]
		cmd := r.Node().Command(t.Context(), tool[0], tool[1:]...)
		cmd.Stdin = &text
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", tool, err, out)
		}
	})
}
