package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/model"
	"sluice/internal/relay/count"
)

// The times are those of connection tracking.
func TestSilentSessionsEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		mute bool          // the endpoint does not answer
		age  time.Duration // when the client sends again
		want time.Duration // how long it lives then
	}{
		{"unanswered", true, time.Second, 30 * time.Second},
		{"unanswered for long", true, 10 * time.Second, 30 * time.Second},
		{"answered", false, time.Second, 30 * time.Second},
		{"stream", false, 3 * time.Second, 120 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := newClock()
			e := newEngine(t, Config{Now: clock.now})
			s := serve(t, "a", "127.0.0.1")
			s.mute.Store(c.mute)
			l := listen(t, e, "127.0.0.1", s.addr())
			client := dial(t, l.Addr())
			say := func() {
				n := s.got.Load()
				if _, err := client.Write([]byte("?")); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the endpoint has it", func() bool { return s.got.Load() > n })
				if !c.mute {
					answer(t, client)
				}
			}
			say()
			clock.forward(c.age)
			say()
			clock.forward(c.want - time.Millisecond)
			e.sweep()
			if e.Sessions() != 1 {
				t.Errorf("it ended before %s were over", c.want)
			}
			clock.forward(time.Millisecond)
			e.sweep()
			if n := l.Stats().Ended[Idle]; n != 1 || e.Sessions() != 0 {
				t.Errorf("%d sessions after %s, and %d have ended as idle", e.Sessions(), c.want, n)
			}
			say()
		})
	}
}

// An endpoint that nobody listens at gets one datagram; the client's next one goes elsewhere.
func TestRefusingEndpointIsLeft(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		e := newEngine(t, Config{})
		dead := serve(t, "dead", at)
		l := listen(t, e, at, dead.addr(), serve(t, "alive", at).addr())
		dead.Close()
		client := dial(t, l.Addr())
		if _, err := client.Write([]byte("lost")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the refusal has come", func() bool { return l.Stats().Ended[EndpointRefused] == 1 })
		for range 3 {
			expect(t, client, "alive?")
			expect(t, dial(t, l.Addr()), "alive?") // the endpoint is marked
		}
	}
}

// An answer ends the mark of an endpoint that has failed before.
func TestAnswerEndsAMark(t *testing.T) {
	e := newEngine(t, Config{Now: newClock().now})
	a, b := serve(t, "a", "127.0.0.1").addr(), serve(t, "b", "127.0.0.1").addr()
	l := listen(t, e, "127.0.0.1", a)
	l.target.Picker.Failed(a)
	expect(t, dial(t, l.Addr()), "a?") // there is no other
	l.target.Picker.Set(listOf([]netip.AddrPort{a, b}), model.BalanceDefault, 0)
	got := map[string]bool{}
	for range 2 {
		got[string(ask(t, dial(t, l.Addr()), []byte("?")))] = true
	}
	if !got["a?"] || !got["b?"] {
		t.Errorf("two clients were answered by %v, want both endpoints", got)
	}
}

// The refusal of an earlier datagram may be told to who sends the next: that one is not lost.
func TestRefusalToldToTheSender(t *testing.T) {
	e := newEngine(t, Config{})
	a, b := serve(t, "a", "127.0.0.1"), serve(t, "b", "127.0.0.1")
	l := listen(t, e, "127.0.0.1", a.addr(), b.addr())
	for i := range 30 { // now the one is told, now the other
		a.Close()
		client := dial(t, l.Addr())
		if _, err := client.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			eventually(t, "it is sent", func() bool { return l.Stats().In > 0 })
		}
		for range 5 {
			_, _ = client.Write([]byte("?"))
		}
		if got := string(answer(t, client)); got != "b?" {
			t.Fatalf("the answer is %q, want that of b", got)
		}
		l.target.Picker.Worked(a.addr())
		l.target.Picker.Set(listOf([]netip.AddrPort{a.addr(), b.addr()}), model.BalanceDefault, 0)
	}
}

func TestSessionsLeaveWithTheirEndpoint(t *testing.T) {
	e := newEngine(t, Config{})
	a, b := serve(t, "a", "127.0.0.1").addr(), serve(t, "b", "127.0.0.1").addr()
	l := listen(t, e, "127.0.0.1", a, b)
	client, other := dial(t, l.Addr()), dial(t, l.Addr())
	expect(t, client, "a?")
	expect(t, other, "b?")

	l.target.Picker.Set(listOf([]netip.AddrPort{b}), model.BalanceDefault, 0)
	l.Changed(Settings{Draining: []netip.AddrPort{a}})
	expect(t, client, "a?")
	expect(t, dial(t, l.Addr()), "b?")

	l.Changed(Settings{})
	if n := l.Stats().Ended[EndpointGone]; n != 1 {
		t.Errorf("%d sessions ended, want the one of the endpoint that is gone", n)
	}
	expect(t, client, "b?")
	expect(t, other, "b?")
}

// An endpoint that leaves between the choice and the socket to it gets nothing.
func TestEndpointLeavesWhileASessionOpens(t *testing.T) {
	reached, proceed := make(chan struct{}, 1), make(chan struct{})
	var hold atomic.Bool
	e := newEngine(t, Config{In: func(f func() error) error {
		if hold.Load() {
			reached <- struct{}{}
			<-proceed
		}
		return f()
	}})
	a, b := serve(t, "a", "127.0.0.1"), serve(t, "b", "127.0.0.1")
	l := listen(t, e, "127.0.0.1", a.addr())
	hold.Store(true)
	client := dial(t, l.Addr())
	if _, err := client.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	<-reached
	l.target.Picker.Set(listOf([]netip.AddrPort{b.addr()}), model.BalanceDefault, 0)
	l.Changed(Settings{})
	close(proceed)
	if got := string(answer(t, client)); got != "b?" {
		t.Errorf("the answer is %q, want %q", got, "b?")
	}
	if n := a.got.Load(); n != 0 {
		t.Errorf("the endpoint that has left got %d datagrams", n)
	}
}

// A second process takes the socket over. The first one passes on answers that were on their way, and reads no more.
func TestHandOver(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		old, next := newEngine(t, Config{}), newEngine(t, Config{})
		a, b := serve(t, "a", at), serve(t, "b", at)
		first := listen(t, old, at, a.addr())
		client := dial(t, first.Addr())
		expect(t, client, "a?")
		session := first.choose(func(*session) bool { return true })[0]

		file, err := first.File()
		if err != nil {
			t.Fatal(err)
		}
		first.Stop()
		if _, err := client.Write([]byte("?")); err != nil { // while nobody reads
			t.Fatal(err)
		}
		second := listenFor(t, next, Target{Listen: first.Addr(), Socket: file, Picker: picker(next, b.addr())})
		file.Close()
		if got := string(answer(t, client)); got != "b?" {
			t.Errorf("what waited in the socket was answered with %q, want the next process's %q", got, "b?")
		}
		expect(t, client, "b?")
		if _, err := a.WriteToUDPAddrPort([]byte("late"), session.conn.LocalAddr().(addrPorter).AddrPort()); err != nil {
			t.Fatal(err)
		}
		if got := string(answer(t, client)); got != "late" {
			t.Errorf("got %q, want the first process's %q", got, "late")
		}
		if second.Addr() != first.Addr() {
			t.Errorf("the next process listens at %s, want %s", second.Addr(), first.Addr())
		}
		first.Close()
		expect(t, client, "b?")
	}
}

type addrPorter interface{ AddrPort() netip.AddrPort }

func TestStopAwaitsAnswers(t *testing.T) {
	clock := newClock()
	e := newEngine(t, Config{Now: clock.now})
	a := serve(t, "a", "127.0.0.1")
	l := listen(t, e, "127.0.0.1", a.addr())
	client := dial(t, l.Addr())
	expect(t, client, "a?")
	stopped := make(chan error, 1)
	go func() { stopped <- e.Stop(context.Background()) }()
	eventually(t, "nothing is read", l.stopped.Load)
	clock.forward(Linger - time.Millisecond)
	e.sweep()
	session := l.choose(func(*session) bool { return true })
	if len(session) != 1 {
		t.Fatal("the session has ended before its time")
	}
	if _, err := a.WriteToUDPAddrPort([]byte("late"), session[0].conn.LocalAddr().(addrPorter).AddrPort()); err != nil {
		t.Fatal(err)
	}
	if got := string(answer(t, client)); got != "late" {
		t.Errorf("got %q, want %q", got, "late")
	}
	clock.forward(Linger)
	e.sweep()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := e.Listen(Target{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Picker: picker(e)}); !errors.Is(err, ErrStopped) {
		t.Errorf("an Engine that has stopped listens: %v", err)
	}
}

func TestStopCutsOffWhatDoesNotEnd(t *testing.T) {
	e := newEngine(t, Config{})
	client := dial(t, listen(t, e, "127.0.0.1", serve(t, "a", "127.0.0.1").addr()).Addr())
	expect(t, client, "a?")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped with %v, want %v", err, context.Canceled)
	}
	if e.Sessions() != 0 {
		t.Errorf("%d sessions are left", e.Sessions())
	}
}

// A port is free as soon as Close returns.
func TestClosedPortIsFree(t *testing.T) {
	e := newEngine(t, Config{})
	l := listen(t, e, "127.0.0.1", serve(t, "a", "127.0.0.1").addr())
	expect(t, dial(t, l.Addr()), "a?")
	at := l.Addr()
	if n := l.Close(); n != 1 {
		t.Errorf("%d sessions were ended, want 1", n)
	}
	again := listenFor(t, e, Target{Listen: at, Picker: picker(e, serve(t, "b", "127.0.0.1").addr())})
	expect(t, dial(t, again.Addr()), "b?")
}

// The kernel may give the port of a local endpoint that nobody listens at to the socket towards it.
func TestSessionDoesNotTalkToItself(t *testing.T) {
	e := newEngine(t, Config{})
	dead := serve(t, "dead", "127.0.0.1")
	at := dead.addr()
	dead.Close()
	before, err := os.ReadFile(portRange)
	if err != nil {
		t.Fatal(err)
	}
	// Where sockets get the ports, in turn, of which one is the endpoint's.
	first := at.Port() &^ 1
	if err := os.WriteFile(portRange, fmt.Appendf(nil, "%d %d", first, first+1), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(portRange, before, 0o600) })
	// Somebody has the other one.
	other := first + first + 1 - at.Port()
	taken, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), other)))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := &session{listener: &Listener{engine: e, count: count.New(nil), target: Target{Picker: picker(e, at)}}}
	if to, err := s.connect(at); !errors.Is(err, errSelf) {
		t.Errorf("connected from %s to %s: %v, want %v", to.conn.LocalAddr(), at, err, errSelf)
	}
}

const portRange = "/proc/sys/net/ipv4/ip_local_port_range"
