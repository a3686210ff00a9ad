package cases

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/internal/kernel/link"
	"sluice/internal/kernel/netns"
	"sluice/internal/kernel/sysctl"
)

// neighbour is a machine on a link of the node's own, which sends packets for loopback addresses there.
func (st *stage) neighbour() *netns.NS {
	st.Helper()
	ns, err := netns.New()
	if err != nil {
		st.Fatal(err)
	}
	st.Cleanup(func() { _ = ns.Close() })
	near, err := link.Open(st.lab.Node().Namespace().Fd())
	if err != nil {
		st.Fatal(err)
	}
	defer near.Close()
	if err := near.AddVeth("side0", ns.Fd(), "side1"); err != nil {
		st.Fatal(err)
	}
	st.node("", "sh", "-ec", "ip link set side0 up; ip route add 203.0.113.99 dev side0")
	if err := ns.Do(routeLocalnet); err != nil {
		st.Fatal(err)
	}
	out, err := ns.Command(st.Context(), "sh", "-ec", `
		ip address add 203.0.113.99/32 dev side1
		ip link set side1 up
		ip route add 192.168.10.11 dev side1
		ip address del 127.0.0.1/8 dev lo
		ip route add 127.0.0.0/8 via 192.168.10.11 dev side1`).CombinedOutput()
	if err != nil {
		st.Fatalf("%v\n%s", err, out)
	}
	return ns
}

// long is how long an answer may take: a first packet that is lost is sent again after a second.
const long = 10 * time.Second

// ask connects and returns what the server says.
func ask(ns *netns.NS, to string, patience time.Duration) (answer string, err error) {
	err = ns.Do(func() error {
		d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.IPv4(203, 0, 113, 99)}}
		c, err := d.Dial("tcp4", to)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		b := make([]byte, 200)
		n, err := c.Read(b)
		answer = string(b[:n])
		return err
	})
	return answer, err
}

// Node ports on localhost need the kernel's route_localnet, which lets a neighbour on the same link send packets to
// loopback addresses. Sluice must not let them in: neither to node ports nor to what else listens there.
func TestLoopbackIsNotReachedFromOutside(t *testing.T) {
	st := open(t, "node-port-on-localhost")
	ns := st.neighbour()
	daemon := netip.MustParseAddrPort("127.0.0.1:7777")
	if _, err := st.lab.Node().Serve(6, daemon); err != nil {
		t.Fatal(err)
	}
	if err := st.lab.Node().Do(routeLocalnet); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(ns, daemon.String(), long); err != nil {
		t.Fatalf("without Sluice the neighbour should reach the loopback address, or this test shows nothing: %v", err)
	}
	st.objects(1)
	st.start()
	st.flows(2)
	if answer, err := ask(ns, "192.168.10.11:30500", long); !strings.Contains(answer, "saw 203.0.113.99:") {
		t.Errorf("the node port at the node's address answers %q, %v", answer, err)
	}
	for _, to := range []string{"127.0.0.1:30500", daemon.String()} {
		if answer, err := ask(ns, to, time.Second); !timedOut(err) {
			t.Errorf("%s from outside: want silence, got %q, %v", to, answer, err)
		}
	}
}

// routeLocalnet lets packets to and from loopback addresses pass the network.
func routeLocalnet() error {
	_, err := sysctl.Set("net.ipv4.conf.all.route_localnet", "1")
	return err
}
