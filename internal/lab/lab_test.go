package lab_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

func up(t *testing.T, topology lab.Topology) *lab.Lab {
	t.Helper()
	nstest.Require(t)
	l, err := lab.Up(topology)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func serve(t *testing.T, h *lab.Host, protocol model.Protocol, port uint16) *lab.Server {
	t.Helper()
	s, err := h.ServeAll(protocol, port)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func dial(t *testing.T, h *lab.Host, d lab.Dial) lab.Outcome {
	t.Helper()
	o, err := h.Dial(d)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Every machine reaches every other, by every protocol in both families, and is seen with its own address.
func TestEveryoneReachesEveryone(t *testing.T) {
	l := up(t, lab.Reference())
	type end struct {
		host string
		addr [2]string
	}
	ends := []end{
		{"node-a", [2]string{"192.168.10.11", "fd00:10::11"}},
		{"node-b", [2]string{"192.168.10.12", "fd00:10::12"}},
		{"pods-a", [2]string{"10.244.1.50", "fd00:244:0:1::50"}},
		{"pods-a", [2]string{"10.244.1.82", "fd00:244:0:1::82"}},
		{"pods-b", [2]string{"10.244.2.7", "fd00:244:0:2::7"}},
		{"clients", [2]string{"198.51.100.9", "2001:db8:77::9"}},
	}
	for _, name := range []string{"node-a", "node-b", "pods-a", "pods-b", "clients"} {
		for _, p := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
			serve(t, l.Host(name), p, 8080)
		}
	}
	for _, from := range ends {
		for _, to := range ends {
			for _, f := range model.Families {
				for _, p := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
					d := lab.Dial{
						From:     netip.MustParseAddr(from.addr[f]),
						To:       netip.AddrPortFrom(netip.MustParseAddr(to.addr[f]), 8080),
						Protocol: p,
					}
					o := dial(t, l.Host(from.host), d)
					if o.Action != plan.Forward || o.Endpoint != d.To || o.Peer.Addr() != d.From {
						t.Errorf("%s → %s/%s: %s", d.From, d.To, p, o)
					}
				}
			}
		}
	}
}

func TestClientsPort(t *testing.T) {
	l := up(t, lab.Reference())
	for _, p := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
		serve(t, l.Host("pods-a"), p, 8080)
		for _, to := range []string{"10.244.1.82:8080", "[fd00:244:0:1::82]:8080"} {
			o := dial(t, l.Host("node-a"), lab.Dial{FromPort: 40001, To: netip.MustParseAddrPort(to), Protocol: p})
			if o.Peer.Port() != 40001 {
				t.Errorf("%s/%s: %s", to, p, o)
			}
		}
	}
}

func TestPodsInterfaceHasTheNameItIsGiven(t *testing.T) {
	topology := lab.Reference()
	topology.Pods[0].Interface = "azv12ab"
	l := up(t, topology)
	err := l.Node().Do(func() error {
		_, err := net.InterfaceByName("azv12ab")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPodReachesItself(t *testing.T) {
	l := up(t, lab.Reference())
	pods := l.Host("pods-a")
	serve(t, pods, model.TCP, 8080)
	pod := netip.MustParseAddr("10.244.1.50")
	o := dial(t, pods, lab.Dial{From: pod, To: netip.AddrPortFrom(pod, 8080), Protocol: model.TCP})
	if o.Action != plan.Forward || o.Endpoint.Addr() != pod || o.Peer.Addr() != pod {
		t.Errorf("got %s", o)
	}
}

func TestOutcomesWithoutAnAnswer(t *testing.T) {
	l := up(t, lab.Reference())
	tests := []struct {
		name, host, to string
		protocol       model.Protocol
		want           plan.Action
	}{
		{"nobody listens", "clients", "10.244.1.82:9", model.TCP, plan.Reject},
		{"nobody listens, UDP", "clients", "10.244.1.82:9", model.UDP, plan.Reject},
		{"nobody listens, IPv6", "pods-a", "[fd00:10::11]:9", model.TCP, plan.Reject},
		{"Service address, from outside", "clients", "10.96.0.1:80", model.TCP, plan.Unhandled},
		{"Service address, from a pod", "pods-a", "10.96.0.1:80", model.UDP, plan.Unhandled},
		{"Service address, from the node", "node-a", "10.96.0.1:80", model.TCP, plan.Unhandled},
		{"Service address, IPv6", "node-a", "[fd00:96::1]:80", model.TCP, plan.Unhandled},
		{"Service address, IPv6, UDP", "clients", "[2001:db8:1b::1]:80", model.UDP, plan.Unhandled},
		{"SCTP", "clients", "192.0.2.1:80", model.SCTP, plan.Unhandled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := dial(t, l.Host(tt.host), lab.Dial{To: netip.MustParseAddrPort(tt.to), Protocol: tt.protocol})
			if o.Action != tt.want {
				t.Errorf("got %s, want %s", o, tt.want)
			}
		})
	}
}

// Refusals are not subject to the kernel's limit of ICMP messages, or spreads over a rejecting Service would see drops.
func TestManyRefusals(t *testing.T) {
	l := up(t, lab.Reference())
	d := lab.Dial{To: netip.MustParseAddrPort("10.244.1.82:9"), Protocol: model.UDP}
	tally, err := l.Host("clients").Spread(d, 100)
	if err != nil || tally.Failed[plan.Reject] != 100 {
		t.Errorf("got %+v, %v", tally, err)
	}
}

func TestSilenceIsADrop(t *testing.T) {
	l := up(t, lab.Reference())
	udp := lab.Dial{To: netip.MustParseAddrPort("10.244.1.82:53"), Protocol: model.UDP, Timeout: 50 * time.Millisecond}
	sink(t, l.Host("pods-a"), udp.To)
	if o := dial(t, l.Host("clients"), udp); o.Action != plan.Drop {
		t.Errorf("got %s", o)
	}
}

func TestConnectionsStayOpen(t *testing.T) {
	l := up(t, lab.Reference())
	s := serve(t, l.Host("pods-a"), model.TCP, 8080)
	c, o, err := l.Host("clients").Connect(lab.Dial{To: netip.MustParseAddrPort("10.244.1.82:8080"), Protocol: model.TCP})
	if err != nil || o.Action != plan.Forward {
		t.Fatal(o, err)
	}
	for range 3 {
		if err := c.Echo("still there?"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Echo("still there?"); err == nil {
		t.Error("the server is closed, and its connection still echoes")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestLoadCountsFailures(t *testing.T) {
	l := up(t, lab.Reference())
	d := lab.Dial{To: netip.MustParseAddrPort("10.244.1.82:8080"), Protocol: model.TCP}
	s := serve(t, l.Host("pods-a"), model.TCP, 8080)
	load := l.Host("clients").Load(d, 0)
	waitFor(t, load, func(tally lab.Tally) bool { return tally.Endpoints[d.To] > 10 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, load, func(tally lab.Tally) bool {
		return tally.Failed[plan.Reject] > 10 && strings.Contains(tally.Failures[0].String(), "to 10.244.1.82:8080/TCP: reject: dial tcp 10.244.1.82:8080: connect: connection refused")
	})
	if _, err := load.Stop(); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until the load has seen something; that it never does is for the test's own time limit to find.
func waitFor(t *testing.T, load *lab.Load, seen func(lab.Tally) bool) {
	t.Helper()
	for {
		tally, err := load.Tally()
		if err != nil {
			t.Fatal(err)
		}
		if seen(tally) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestTopologyIsChecked(t *testing.T) {
	wrong := lab.Reference()
	wrong.Pods = append(wrong.Pods, lab.Machine{Name: "node-a"}, lab.Machine{})
	if l, err := lab.Up(wrong); err == nil {
		_ = l.Close()
		t.Error("two machines of one name, and nameless ones, were built")
	}
}

// sink takes UDP datagrams and answers none.
func sink(t *testing.T, h *lab.Host, at netip.AddrPort) {
	t.Helper()
	err := h.Do(func() error {
		c, err := net.ListenPacket("udp4", netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port()).String())
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
