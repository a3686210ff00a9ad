package relay_test

import (
	"net/netip"
	"testing"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/relay/udp"
	"sluice/internal/testkit/nstest"
)

// localhost is one node port of a Service, as the node itself reaches it by a loopback address.
type localhost struct {
	listen  netip.AddrPort
	pods    []netip.AddrPort
	outside netip.AddrPort // the same port, as others would reach it
}

func localhosts() map[model.Family]localhost {
	at := func(addrs ...string) (out []netip.AddrPort) {
		for _, a := range addrs {
			out = append(out, netip.MustParseAddrPort(a))
		}
		return out
	}
	return map[model.Family]localhost{
		model.IPv4: {
			listen: at("127.0.0.1:30080")[0], outside: at("192.168.10.11:30080")[0],
			pods: at("10.244.1.5:8080", "10.244.1.6:8080", "10.244.2.7:8080"), // the last one is on another node
		},
		model.IPv6: {
			listen: at("[::1]:30080")[0], outside: at("[fd00:10::11]:30080")[0],
			pods: at("[fd00:244:0:1::5]:8080", "[fd00:244:0:1::6]:8080", "[fd00:244:0:2::7]:8080"),
		},
	}
}

// Node ports at loopback addresses are the proxy's own business: the kernel redirects nothing there. Both protocols of
// both families have sockets at the same port.
func TestNodePortsAtLocalhost(t *testing.T) {
	nstest.Require(t)
	l, err := lab.Up(lab.Reference())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := newServer(t, relay.Config{In: l.Node().Do})
	for _, protocol := range []model.Protocol{model.TCP, model.UDP} {
		for _, name := range []string{"pods-a", "pods-b"} {
			server, err := l.Host(name).ServeAll(protocol, 8080)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { server.Close() })
		}
		for _, at := range localhosts() {
			put(t, s, direct("web", protocol, at.listen, at.pods...))
		}
	}
	for family, at := range localhosts() {
		for _, protocol := range []model.Protocol{model.TCP, model.UDP} {
			t.Run(family.String()+" "+protocol.String(), func(t *testing.T) {
				wantTurns(t, l, lab.Dial{To: at.listen, Protocol: protocol}, at)
				wantNobody(t, l, lab.Dial{To: at.outside, Protocol: protocol})
				key := direct("web", protocol, at.listen).Key
				if n := s.Stats().Targets[key]; n.Accepted != 30 || n.DialFailures != 0 || n.Out == 0 {
					t.Errorf("counted %+v, want 30 of clients", n)
				}
			})
		}
	}
	until(t, "each datagram of 60 clients is counted, and its answer", func() bool {
		return s.Stats().Datagrams == udp.Stats{In: 60, Out: 60}
	})
}

// wantTurns wants each endpoint to have its share, and to see the node as its client.
func wantTurns(t *testing.T, l *lab.Lab, d lab.Dial, at localhost) {
	t.Helper()
	shares := map[netip.AddrPort]int{}
	for i := range 30 {
		d.FromPort = uint16(20_000 + i) // what comes from one port twice is one session of UDP
		o, err := l.Node().Dial(d)
		if err != nil {
			t.Fatal(err)
		}
		shares[o.Endpoint]++
		if o.Peer.Addr().IsLoopback() {
			t.Errorf("%s, which cannot answer there", o)
		}
	}
	for _, pod := range at.pods {
		if shares[pod] != 10 {
			t.Errorf("%s has %d of 30 clients, want 10: %v", pod, shares[pod], shares)
		}
	}
}

// wantNobody wants that the port is of no use for others.
func wantNobody(t *testing.T, l *lab.Lab, d lab.Dial) {
	t.Helper()
	for _, host := range []*lab.Host{l.Node(), l.Host("clients")} {
		o, err := host.Dial(d)
		if err != nil {
			t.Fatal(err)
		}
		if o.Action != plan.Reject {
			t.Errorf("%s from elsewhere: %s, want %s", d.To, o, plan.Reject)
		}
	}
}
