package udp

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay/count"
	"sluice/internal/relay/pick"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// patience is how long a test waits for what is to come at once.
const patience = 20 * time.Second

// clock is one that tests turn.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Unix(1_000_000, 0).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *clock) forward(d time.Duration) { c.nanos.Add(int64(d)) }

// newEngine makes an Engine that ends with the test, and leaves nothing running.
func newEngine(t testing.TB, c Config) *Engine {
	t.Helper()
	nstest.Require(t)
	before := goleak.IgnoreCurrent()
	e := New(c)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = e.Stop(ctx)
		goleak.VerifyNone(t, before)
		if e.Sessions() != 0 || e.backlog.held.Load() != 0 {
			t.Errorf("%d sessions are counted and %d bytes are held when all has ended", e.Sessions(), e.backlog.held.Load())
		}
	})
	return e
}

// listen makes a Listener at any port of an address, with endpoints in turn.
func listen(t testing.TB, e *Engine, at string, endpoints ...netip.AddrPort) *Listener {
	t.Helper()
	return listenFor(t, e, Target{Listen: netip.AddrPortFrom(netip.MustParseAddr(at), 0), Picker: picker(e, endpoints...)})
}

func listenFor(t testing.TB, e *Engine, target Target) *Listener {
	t.Helper()
	l, err := e.Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("at %s: %+v, %+v", l.Addr(), l.Counts(), l.Stats())
		}
	})
	return l
}

// listenWithGate makes a Listener whose sessions do not open until the gate is closed.
func listenWithGate(t testing.TB, e *Engine, endpoints ...netip.AddrPort) (l *Listener, gate chan struct{}) {
	t.Helper()
	gate = make(chan struct{})
	return listenFor(t, e, Target{
		Listen: netip.MustParseAddrPort("0.0.0.0:0"), Picker: picker(e, endpoints...),
		Original: func(_, local netip.AddrPort) (netip.AddrPort, bool) { <-gate; return local, true },
	}), gate
}

func picker(e *Engine, endpoints ...netip.AddrPort) *pick.Picker {
	p := pick.New(pick.Config{Now: e.config.Now})
	p.Set(listOf(endpoints), model.BalanceDefault, 0)
	return p
}

func listOf(endpoints []netip.AddrPort) (list []plan.Endpoint) {
	for _, a := range endpoints {
		list = append(list, plan.Endpoint{AddrPort: a, Weight: 1})
	}
	return list
}

// server answers each datagram with its name and what it got.
type server struct {
	*net.UDPConn
	name string
	got  atomic.Int64
	mute atomic.Bool
}

func serve(t testing.TB, name, at string) *server {
	t.Helper()
	s := &server{UDPConn: bind(t, at), name: name}
	go s.run()
	return s
}

func (s *server) run() {
	b := make([]byte, 1<<16)
	for {
		n, from, err := s.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		s.got.Add(1)
		if !s.mute.Load() {
			_, _ = s.WriteToUDPAddrPort(append([]byte(s.name), b[:n]...), from)
		}
	}
}

func (s *server) addr() netip.AddrPort { return s.LocalAddr().(*net.UDPAddr).AddrPort() }

// bind makes a socket at an address, at any port, until the test ends.
func bind(t testing.TB, at string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP(network(netip.MustParseAddr(at)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(at), 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// dial makes a client's socket that takes answers from one address and port alone.
func dial(t testing.TB, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP(network(to.Addr()), nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// to is a Listener's port at another of its addresses.
func (l *Listener) to(addr string) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(addr), l.Addr().Port())
}

// ask sends a datagram and returns the answer.
func ask(t testing.TB, c *net.UDPConn, payload []byte) []byte {
	t.Helper()
	if _, err := c.Write(payload); err != nil {
		t.Fatal(err)
	}
	return answer(t, c)
}

func answer(t testing.TB, c *net.UDPConn) []byte {
	t.Helper()
	b := make([]byte, 1<<16)
	_ = c.SetReadDeadline(time.Now().Add(patience))
	n, err := c.Read(b)
	if err != nil {
		t.Fatalf("no answer from %s: %v", c.RemoteAddr(), err)
	}
	return b[:n]
}

// expect asks and compares.
func expect(t testing.TB, c *net.UDPConn, want string) {
	t.Helper()
	if got := string(ask(t, c, []byte("?"))); got != want {
		t.Fatalf("the answer is %q, want %q", got, want)
	}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time:", what)
		}
	}
}

// run runs a program, such as ip, in the network of the test.
func run(t testing.TB, command string) {
	t.Helper()
	args := strings.Fields(command)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}

// Datagrams of every size come whole, both ways, at both families.
func TestSizes(t *testing.T) {
	e := newEngine(t, Config{})
	for _, c := range []struct{ any, at string }{{"0.0.0.0", "127.0.0.1"}, {"::", "::1"}} {
		client := dial(t, listen(t, e, c.any, serve(t, "", c.at).addr()).to(c.at))
		for _, size := range []int{0, 1, 1400, 9000, 65507} {
			payload := bytes.Repeat([]byte{byte(size)}, size)
			if got := ask(t, client, payload); !bytes.Equal(got, payload) {
				t.Errorf("%s: of %d bytes, %d came back, or others", c.at, size, len(got))
			}
		}
	}
}

// An answer comes from the address that the client has asked, of whichever the machine has.
func TestAnswersComeFromTheRightAddress(t *testing.T) {
	e := newEngine(t, Config{})
	run(t, "ip addr replace fd00::5/128 dev lo nodad")
	eventually(t, "the kernel has made the route to it, which it does a moment later", func() bool {
		out, _ := exec.Command("ip", "route", "get", "fd00::5").Output()
		return strings.HasPrefix(string(out), "local fd00::5 ")
	})
	run(t, "ip addr replace 10.1.2.3/32 dev lo")
	v4 := listen(t, e, "0.0.0.0", serve(t, "a", "127.0.0.1").addr())
	v6 := listen(t, e, "::", serve(t, "a", "::1").addr())
	for _, to := range []netip.AddrPort{
		v4.to("127.0.0.1"), v4.to("127.0.0.9"), v4.to("10.1.2.3"), v6.to("::1"), v6.to("fd00::5"),
	} {
		expect(t, dial(t, to), "a?")
	}
}

// One socket of a client that asks two addresses has two sessions: answers do not get mixed up.
func TestAddressesOfTheProxyTellSessionsApart(t *testing.T) {
	e := newEngine(t, Config{})
	l := listen(t, e, "0.0.0.0", serve(t, "a", "127.0.0.1").addr(), serve(t, "b", "127.0.0.1").addr())
	client := bind(t, "127.0.0.1")
	for i, to := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.2"} {
		if _, err := client.WriteToUDPAddrPort([]byte("?"), l.to(to)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 10)
		_ = client.SetReadDeadline(time.Now().Add(patience))
		n, from, err := client.ReadFromUDPAddrPort(b)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"a?", "b?", "a?"}[i]; from != l.to(to) || string(b[:n]) != want {
			t.Errorf("asked %s: %q from %s, want %q from there", to, b[:n], from, want)
		}
	}
	if n := e.Sessions(); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
}

// Behind a rule that redirects a Service's address to the proxy, clients see that address alone: connection tracking
// takes the answer for one of the redirected flow.
func TestRedirectedClientsGetAnswersFromTheService(t *testing.T) {
	e := newEngine(t, Config{})
	run(t, "ip addr replace 10.1.2.3/32 dev lo")
	run(t, "ip route replace 10.96.0.0/16 dev lo src 10.1.2.3")
	l := listen(t, e, "0.0.0.0", serve(t, "a", "127.0.0.1").addr())
	run(t, "nft add table ip t")
	t.Cleanup(func() { run(t, "nft delete table ip t") })
	run(t, "nft add chain ip t c { type nat hook output priority -100 ; }")
	run(t, "nft add rule ip t c ip daddr 10.96.0.10 udp dport 53 dnat to "+l.to("10.1.2.3").String())
	client := dial(t, netip.MustParseAddrPort("10.96.0.10:53"))
	for range 3 {
		expect(t, client, "a?")
	}
}

func TestEachSessionHasOneEndpoint(t *testing.T) {
	e := newEngine(t, Config{})
	l := listen(t, e, "127.0.0.1", serve(t, "a", "127.0.0.1").addr(), serve(t, "b", "127.0.0.1").addr())
	first, second := dial(t, l.Addr()), dial(t, l.Addr())
	for range 3 {
		expect(t, first, "a?")
		expect(t, second, "b?")
	}
	eventually(t, "all datagrams are counted", func() bool { return l.Stats().In == 6 && l.Stats().Out == 6 })
	eventually(t, "all bytes are counted", func() bool { return l.Counts().In == 6 && l.Counts().Out == 12 })
	if c := l.Counts(); c.Accepted != 2 || c.Open != 2 {
		t.Errorf("counted %+v, want 2 sessions", c)
	}
}

// What a client sends at once, before there is a socket for it, comes in order.
func TestTheFirstDatagramsKeepTheirOrder(t *testing.T) {
	e := newEngine(t, Config{})
	l, gate := listenWithGate(t, e, serve(t, "", "127.0.0.1").addr())
	client := dial(t, l.to("127.0.0.1"))
	for i := range byte(10) {
		if _, err := client.Write([]byte{i}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "10 datagrams are held", func() bool { return e.backlog.held.Load() == 10 })
	close(gate)
	for i := range byte(10) {
		if got := answer(t, client); len(got) != 1 || got[0] != i {
			t.Errorf("answer %d is %v", i, got)
		}
	}
}

func TestHeldDatagramsHaveABound(t *testing.T) {
	e := newEngine(t, Config{})
	l, gate := listenWithGate(t, e, serve(t, "", "127.0.0.1").addr())
	client := dial(t, l.to("127.0.0.1"))
	for range maxHeld + 5 {
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "5 are dropped", func() bool { return l.Stats().Dropped[Backlog] == 5 })
	close(gate)
	for range maxHeld {
		answer(t, client)
	}
}

// Who was not redirected is no client of a Service.
func TestDirectClientsAreIgnored(t *testing.T) {
	e := newEngine(t, Config{})
	s := serve(t, "a", "127.0.0.1")
	var asked atomic.Int64
	l := listenFor(t, e, Target{
		Listen: netip.MustParseAddrPort("0.0.0.0:0"), Picker: picker(e, s.addr()),
		Original: func(_, local netip.AddrPort) (netip.AddrPort, bool) {
			asked.Add(1)
			return netip.AddrPort{}, local.Addr() == netip.MustParseAddr("127.0.0.2")
		},
	})
	stranger := dial(t, l.to("127.0.0.1"))
	if _, err := stranger.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is refused", func() bool { return l.Counts().Refused[count.NotRedirected] == 1 })
	client := dial(t, l.to("127.0.0.2"))
	expect(t, client, "a?")
	expect(t, client, "a?")
	if s.got.Load() != 2 || asked.Load() != 2 || e.Sessions() != 1 {
		t.Errorf("the endpoint got %d datagrams, want 2; asked %d times, want 2; %d sessions, want 1",
			s.got.Load(), asked.Load(), e.Sessions())
	}
}

func TestNoEndpoint(t *testing.T) {
	e := newEngine(t, Config{})
	l := listen(t, e, "127.0.0.1")
	client := dial(t, l.Addr())
	if _, err := client.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is refused", func() bool { return l.Counts().Refused[count.NoEndpoint] == 1 })
	eventually(t, "the session has ended", func() bool { return e.Sessions() == 0 })
	if s := l.Stats(); s.Dropped[Refused] != 1 || s.Ended[NotOpened] != 1 {
		t.Errorf("dropped and ended: %+v, want one each", s)
	}
	l.target.Picker.Set(listOf([]netip.AddrPort{serve(t, "a", "127.0.0.1").addr()}), model.BalanceDefault, 0)
	expect(t, client, "a?")
}
