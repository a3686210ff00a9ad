package relay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/relay/count"
	"sluice/internal/relay/udp"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// patience is how long a test waits for what must happen; reaching it is a failure.
const patience = 20 * time.Second

// newServer makes a Server that is stopped when the test ends. Nothing of it may be left then.
func newServer(t testing.TB, c relay.Config) *relay.Server {
	t.Helper()
	nstest.Require(t)
	s, err := relay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Stop(now) // cuts off what is open
		if open := s.Stats().Total.Open; open != 0 {
			t.Errorf("%d are still counted as open", open)
		}
	})
	return s
}

func noLeak(t *testing.T) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
}

func key(name string, p model.Protocol, f model.Family) relay.Key {
	return relay.Key{
		Port: plan.PortID{Service: model.Name{Namespace: "ns", Name: name}, Protocol: p, Family: f}, List: plan.ListCluster,
	}
}

// direct is a Target that clients connect to themselves.
func direct(name string, p model.Protocol, listen netip.AddrPort, endpoints ...netip.AddrPort) relay.Target {
	t := relay.Target{Key: key(name, p, model.FamilyOf(listen.Addr())), Listen: listen}
	t.Direct = true
	for _, e := range endpoints {
		t.Endpoints = append(t.Endpoints, plan.Endpoint{AddrPort: e, Weight: 1})
	}
	return t
}

func put(t testing.TB, s *relay.Server, targets ...relay.Target) {
	t.Helper()
	for _, target := range targets {
		if err := s.Put(target); err != nil {
			t.Fatal(err)
		}
	}
}

// freePort is a port of an address that nobody listens at.
func freePort(t testing.TB, addr string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// named is an endpoint that says its name to each connection and then what it is told.
func named(t testing.TB, name, addr string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, name)
				_, _ = io.Copy(c, struct{ io.Reader }{c})
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func dial(t testing.TB, to netip.AddrPort) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", to.String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

func receive(t testing.TB, c io.Reader, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("received %q, %v; want %q", b, err, want)
	}
}

func say(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	receive(t, c, text)
}

func wantReset(t testing.TB, to netip.AddrPort) {
	t.Helper()
	c, err := net.DialTimeout("tcp", to.String(), patience)
	if err == nil {
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("got %v, want a reset", err)
	}
}

func wantClosed(t testing.TB, at netip.AddrPort) {
	t.Helper()
	c, err := net.DialTimeout("tcp", at.String(), patience)
	if err == nil {
		_ = c.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("got %v, want that nobody listens at %s", err, at)
	}
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("still not: ", what)
		}
	}
}

// redirect has the kernel send what goes to a port of an address to another port of this machine.
func redirect(t testing.TB, from, to netip.AddrPort) {
	t.Helper()
	family := map[bool]string{true: "ip", false: "ip6"}[from.Addr().Is4()]
	table := fmt.Sprintf("%s t%d", family, from.Port())
	rules := fmt.Sprintf(`add table %[1]s
add chain %[1]s out { type nat hook output priority -100; }
add rule %[1]s out %[2]s daddr %[3]s meta l4proto {tcp, udp} th dport %[4]d dnat to %[5]s
`, table, family, from.Addr(), from.Port(), to)
	cmd := exec.CommandContext(t.Context(), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("nft", "delete table "+table).Run() })
}

// The kernel redirects to a port of the proxy. Who goes there without it finds nobody.
func TestRedirectedClients(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	const port = 10800
	for _, c := range []struct {
		family   model.Family
		service  netip.AddrPort
		loopback string
		header   string // of version 1; %d is the client's port
	}{
		{model.IPv4, netip.MustParseAddrPort("127.9.9.9:8001"), "127.0.0.1", "PROXY TCP4 127.0.0.1 127.9.9.9 %d 8001\r\n"},
		{model.IPv6, netip.MustParseAddrPort("[::1]:8002"), "::1", "PROXY TCP6 ::1 ::1 %d 8002\r\n"},
	} {
		t.Run(c.family.String(), func(t *testing.T) {
			proxy := netip.AddrPortFrom(netip.MustParseAddr(c.loopback), port)
			redirect(t, c.service, proxy)
			target := relay.Target{
				Key: key("web", model.TCP, c.family), Listen: netip.AddrPortFrom(c.family.Unspecified(), port),
				Endpoints: []plan.Endpoint{{AddrPort: named(t, "me ", c.loopback), Weight: 1}},
			}
			put(t, s, target)
			client := dial(t, c.service)
			receive(t, client, "me ")
			say(t, client, "hello")
			wantReset(t, proxy)
			until(t, "it was counted", func() bool { return s.Stats().Targets[target.Key].Refused[count.NotRedirected] == 1 })

			target.ProxyProtocol = 1 // for new clients alone
			put(t, s, target)
			say(t, client, "no header in here")
			client = dial(t, c.service)
			receive(t, client, "me "+fmt.Sprintf(c.header, client.LocalAddr().(*net.TCPAddr).Port))

			target.ProxyProtocol = 2
			put(t, s, target)
			receive(t, dial(t, c.service), "me \r\n\r\n\x00\r\nQUIT\n\x21")
		})
	}
}

// An address of one link is told with its link, and without it, and is the same: who connects there was not redirected.
func TestNeighboursAreNotRedirected(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	const port, neighbour = 10802, "fe80::1234"
	if out, err := exec.Command("ip", "addr", "add", neighbour+"/64", "dev", "lo", "nodad").CombinedOutput(); err != nil {
		t.Fatalf("ip: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "addr", "del", neighbour+"/64", "dev", "lo").Run() })
	redirect(t, netip.MustParseAddrPort("[::1]:8003"), netip.AddrPortFrom(netip.IPv6Loopback(), port)) // so that connections are tracked
	target := relay.Target{
		Key: key("web", model.TCP, model.IPv6), Listen: netip.AddrPortFrom(netip.IPv6Unspecified(), port),
		Endpoints: []plan.Endpoint{{AddrPort: named(t, "me ", "::1"), Weight: 1}},
	}
	put(t, s, target)
	wantReset(t, netip.AddrPortFrom(netip.MustParseAddr(neighbour+"%lo"), port))
	until(t, "it was counted", func() bool { return s.Stats().Targets[target.Key].Refused[count.NotRedirected] == 1 })
}

func TestRedirectedDatagrams(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	service, proxy := netip.MustParseAddrPort("127.9.9.9:8053"), netip.MustParseAddrPort("127.0.0.1:10853")
	redirect(t, service, proxy)
	target := relay.Target{
		Key: key("dns", model.UDP, model.IPv4), Listen: netip.MustParseAddrPort("0.0.0.0:10853"),
		Endpoints: []plan.Endpoint{{AddrPort: udpEndpoint(t), Weight: 1}},
	}
	put(t, s, target)
	client := dialUDP(t, service)
	say(t, client, "question")
	stranger := dialUDP(t, proxy)
	_, _ = stranger.Write([]byte("hello?"))
	until(t, "the stranger was refused", func() bool { return s.Stats().Targets[target.Key].Refused[count.NotRedirected] == 1 })
	until(t, "one session, and 8 bytes each way", func() bool {
		n := s.Stats().Total
		return n.Open == 1 && n.In == 8 && n.Out == 8
	})
	until(t, "one datagram each way, and the stranger's dropped", func() bool {
		n := s.Stats().Datagrams
		return n.In == 1 && n.Out == 1 && n.Dropped[udp.Refused] == 1
	})
	s.Remove(target.Key)
	if open := s.Stats().Total.Open; open != 0 {
		t.Errorf("%d sessions have outlived their Target", open)
	}
}

func answer(c net.PacketConn) {
	b := make([]byte, 1500)
	for {
		n, from, err := c.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		_, _ = c.WriteTo(b[:n], from)
	}
}

func dialUDP(t testing.TB, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

func udpEndpoint(t testing.TB) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go answer(c)
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// visit connects, speaks and leaves.
func visit(at netip.AddrPort) error {
	c, err := net.DialTimeout("tcp", at.String(), patience)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, "b"); err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, 2))
	return err
}
