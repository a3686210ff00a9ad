package relay_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"sluice/internal/model"
	"sluice/internal/relay"
)

// A port that somebody has is told of, and costs nobody else anything.
func TestPortInUse(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	at, e := freePort(t, "127.0.0.1"), named(t, "a", "127.0.0.1")
	taken, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	lost := direct("lost", model.TCP, at, e)
	won := direct("won", model.TCP, freePort(t, "127.0.0.1"), e)
	sctp := direct("sctp", model.SCTP, at)
	var bind *relay.BindError
	if err := s.Put(lost); !errors.As(err, &bind) || !bind.InUse() || bind.Listen != at || !errors.Is(bind, syscall.EADDRINUSE) {
		t.Errorf("got %v", err)
	}
	if err := s.Put(sctp); !errors.As(err, &bind) || bind.InUse() || !errors.Is(bind, relay.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	put(t, s, won)
	if n := len(s.Stats().Targets); n != 1 {
		t.Errorf("%d are listened at, want 1", n)
	}
	receive(t, dial(t, won.Listen), "a")

	// A Target that cannot move stays where it is.
	moved := won
	moved.Listen = at
	if err := s.Put(moved); !errors.As(err, &bind) {
		t.Errorf("got %v", err)
	}
	receive(t, dial(t, won.Listen), "a")
}

func TestFamiliesHaveSocketsOfTheirOwn(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	e := named(t, "a", "127.0.0.1")
	for _, p := range []model.Protocol{model.TCP, model.UDP} {
		put(t, s, direct("a", p, netip.MustParseAddrPort("0.0.0.0:10900"), e))
		put(t, s, direct("a", p, netip.MustParseAddrPort("[::]:10900"), e))
	}
	for _, at := range []string{"127.0.0.1:10900", "[::1]:10900"} {
		receive(t, dial(t, netip.MustParseAddrPort(at)), "a")
	}
}

// Endpoints come and go; what is open stays with its own.
func TestEndpointsChange(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	at := freePort(t, "127.0.0.1")
	put(t, s, direct("a", model.TCP, at, named(t, "old", "127.0.0.1")))
	old := dial(t, at)
	receive(t, old, "old")
	put(t, s, direct("a", model.TCP, at, named(t, "new", "127.0.0.1")))
	receive(t, dial(t, at), "new")
	say(t, old, "still there")
	put(t, s, direct("a", model.TCP, at))
	wantReset(t, at)
	say(t, old, "still there")
}

func TestTargetMoves(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	from, to, e := freePort(t, "127.0.0.1"), freePort(t, "127.0.0.1"), named(t, "a", "127.0.0.1")
	put(t, s, direct("a", model.TCP, from, e))
	old := dial(t, from)
	receive(t, old, "a")
	put(t, s, direct("a", model.TCP, to, e))
	wantClosed(t, from)
	receive(t, dial(t, to), "a")
	say(t, old, "still there")
}

func TestRemovedTarget(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	target := direct("a", model.TCP, freePort(t, "127.0.0.1"), named(t, "a", "127.0.0.1"))
	put(t, s, target)
	open := dial(t, target.Listen)
	receive(t, open, "a")
	s.Remove(target.Key)
	wantClosed(t, target.Listen)
	say(t, open, "still there")
	if n := s.Stats(); len(n.Targets) != 0 || n.Total.Open != 1 {
		t.Errorf("%d Targets, %d open; want none, 1", len(n.Targets), n.Total.Open)
	}
}

func TestDrainEnds(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{Drain: 50 * time.Millisecond})
	e := named(t, "a", "127.0.0.1")
	gone, stays := direct("a", model.TCP, freePort(t, "127.0.0.1"), e), direct("b", model.TCP, freePort(t, "127.0.0.1"), e)
	put(t, s, gone, stays)
	a, b := dial(t, gone.Listen), dial(t, stays.Listen)
	receive(t, a, "a")
	receive(t, b, "a")
	s.Remove(gone.Key)
	wantCut(t, a)
	say(t, b, "still there")
}

// A Service that stays keeps its connections, whatever becomes of the listener that they came by.
func TestDrainIsForServicesThatGo(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{Drain: 50 * time.Millisecond})
	e := named(t, "a", "127.0.0.1")
	target := direct("a", model.TCP, freePort(t, "127.0.0.1"), e)
	put(t, s, target)
	before := dial(t, target.Listen)
	receive(t, before, "a")
	moved := target
	moved.Listen = freePort(t, "127.0.0.1")
	put(t, s, moved)
	closed := direct("b", model.TCP, freePort(t, "127.0.0.1"), e)
	put(t, s, closed)
	open := dial(t, closed.Listen)
	receive(t, open, "a")
	s.Close(closed.Key)
	wantClosed(t, closed.Listen)
	gone := direct("c", model.TCP, freePort(t, "127.0.0.1"), e)
	put(t, s, gone)
	other := dial(t, gone.Listen)
	receive(t, other, "a")
	s.Remove(gone.Key) // after the others: what was to end with them has, when this has
	wantCut(t, other)
	say(t, before, "still there")
	say(t, open, "still there")
	s.Remove(moved.Key)
	wantCut(t, before)
	say(t, open, "still there")
}

func wantCut(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read: %v, want a reset", err)
	}
}

func TestStop(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	at := freePort(t, "127.0.0.1")
	put(t, s, direct("a", model.TCP, at, named(t, "a", "127.0.0.1")))
	open := dial(t, at)
	receive(t, open, "a")
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	until(t, "nobody listens", func() bool { return len(s.Stats().Targets) == 0 })
	wantClosed(t, at)
	say(t, open, "still there")
	if err := s.Put(direct("b", model.TCP, at)); !errors.Is(err, relay.ErrStopped) {
		t.Errorf("put: %v", err)
	}
	_ = open.Close()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestStopHasAnEnd(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	at := freePort(t, "127.0.0.1")
	put(t, s, direct("a", model.TCP, at, named(t, "a", "127.0.0.1")))
	open := dial(t, at)
	receive(t, open, "a")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	wantCut(t, open)
}
