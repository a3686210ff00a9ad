package tcp_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay/count"
	"sluice/internal/relay/pick"
	"sluice/internal/relay/tcp"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) {
	if os.Getenv(farEndEnv) == "" {
		nstest.Main(m)
	}
	if err := farEnd(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// patience is how long a test waits for what must happen; reaching it is a failure.
const patience = 20 * time.Second

// rig is a Relay with one Listener.
type rig struct {
	*tcp.Relay
	*tcp.Listener
	picker *pick.Picker
	total  *count.Counter
	log    *bytes.Buffer
	addr   string
}

// newRig makes a rig whose clients connect to it themselves. All is closed when the test ends, and nothing is left.
func newRig(t testing.TB, c tcp.Config, endpoints ...netip.AddrPort) *rig {
	t.Helper()
	nstest.Require(t)
	r := &rig{log: &bytes.Buffer{}, total: count.New(nil)}
	c.Log = slog.New(slog.NewTextHandler(r.log, nil))
	c.Total = r.total
	c.In = func(f func() error) error { return f() }
	if c.Connections == 0 {
		c.Connections = 1000
	}
	r.picker = pick.New(pick.Config{Now: time.Now, Rand: rand.IntN})
	r.set(endpoints...)
	socket := listen(t, "127.0.0.1:0")
	r.addr = socket.Addr().String()
	r.Relay = tcp.New(c)
	r.Listener = r.Serve(socket, tcp.Service{Name: "a/b", Picker: r.picker})
	t.Cleanup(func() {
		r.Stop()
		r.Close()
		if open := r.Counts().Open; open != 0 {
			t.Errorf("%d connections are still counted as open", open)
		}
	})
	return r
}

func noLeak(t *testing.T) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
}

func (r *rig) set(endpoints ...netip.AddrPort) {
	var list []plan.Endpoint
	for _, e := range endpoints {
		list = append(list, plan.Endpoint{AddrPort: e, Weight: 1})
	}
	r.picker.Set(list, model.BalanceDefault, 0)
}

func (r *rig) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", r.addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// until waits for what other goroutines do.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("still not: ", what)
		}
	}
}

func listen(t testing.TB, addr string) *net.TCPListener {
	t.Helper()
	var c net.ListenConfig
	c.SetMultipathTCP(false) // as the proxy listens
	l, err := c.Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.(*net.TCPListener)
}

// endpoint serves each connection with f and then closes it.
func endpoint(t testing.TB, f func(*net.TCPConn)) netip.AddrPort {
	t.Helper()
	l := listen(t, "127.0.0.1:0")
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(c)
			}()
		}
	}()
	return addrOf(l)
}

func addrOf(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }

func echo(c *net.TCPConn) {
	_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
}

// handed is an endpoint that hands its connections to the test.
func handed(t testing.TB) (netip.AddrPort, <-chan *net.TCPConn) {
	t.Helper()
	conns := make(chan *net.TCPConn, 100)
	l := listen(t, "127.0.0.1:0")
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(patience))
			t.Cleanup(func() { _ = c.Close() })
			conns <- c
		}
	}()
	return addrOf(l), conns
}

// refusing is an address where nobody listens.
func refusing(t testing.TB) netip.AddrPort {
	t.Helper()
	l := listen(t, "127.0.0.1:0")
	_ = l.Close()
	return addrOf(l)
}

func send(t testing.TB, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func receive(t testing.TB, c io.Reader, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("received %q, %v; want %q", b, err, want)
	}
}

func receiveAll(t testing.TB, c net.Conn, want string) {
	t.Helper()
	b, err := io.ReadAll(c)
	if err != nil || string(b) != want {
		t.Fatalf("received %q, %v; want %q and the end", b, err, want)
	}
}

func addrPort(t testing.TB, text string) netip.AddrPort {
	t.Helper()
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
