package relay_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"

	"sluice/internal/model"
	"sluice/internal/relay"
)

func export(t *testing.T, s *relay.Server) []relay.Socket {
	t.Helper()
	sockets, err := s.Export(func(relay.Key) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return sockets
}

// kill ends a Server and what it relays, at once.
func kill(s *relay.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Stop(ctx) // which is not content
}

// One Server after the other takes the socket, while clients come all the time. Each of them is served, and those that
// are open stay.
func TestNoConnectionIsLostWithTheSocket(t *testing.T) {
	noLeak(t)
	target := direct("a", model.TCP, freePort(t, "127.0.0.1"), named(t, "a", "127.0.0.1"))
	s := newServer(t, relay.Config{})
	put(t, s, target)
	open := dial(t, target.Listen)
	receive(t, open, "a")
	stop, clients := crowd(t, target.Listen)
	for range 20 {
		next := newServer(t, relay.Config{Inherited: export(t, s)})
		put(t, next, target)
		before := next.Stats().Total.Accepted
		until(t, "the next one has clients", func() bool { return next.Stats().Total.Accepted > before+5 })
		s = next
	}
	stop()
	if n := <-clients; n < 100 {
		t.Errorf("only %d clients came", n)
	}
	say(t, open, "still there")
}

// crowd is clients that connect, speak and leave, until it is stopped. It fails the test when one is not served.
func crowd(t *testing.T, at netip.AddrPort) (stop func(), served <-chan int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	count := make(chan int, 1)
	var all sync.WaitGroup
	var mu sync.Mutex
	n := 0
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil && !t.Failed() {
				if err := visit(at); err != nil {
					t.Error(err)
				}
				mu.Lock()
				n++
				mu.Unlock()
			}
		})
	}
	go func() {
		all.Wait()
		count <- n
	}()
	t.Cleanup(func() { cancel(); all.Wait() })
	return cancel, count
}

// What waits at a socket that has changed hands is served by who has it now.
func TestWhoWaitsIsServedByTheNext(t *testing.T) {
	noLeak(t)
	target := direct("a", model.TCP, freePort(t, "127.0.0.1"), named(t, "a", "127.0.0.1"))
	s := newServer(t, relay.Config{})
	put(t, s, target)
	sockets := export(t, s)
	waits := dial(t, target.Listen)
	next := newServer(t, relay.Config{Inherited: sockets})
	put(t, next, target)
	receive(t, waits, "a")
}

func TestDatagramsOfAnInheritedSocket(t *testing.T) {
	noLeak(t)
	target := direct("a", model.UDP, netip.MustParseAddrPort("127.0.0.1:10953"), udpEndpoint(t))
	s := newServer(t, relay.Config{})
	put(t, s, target)
	client := dialUDP(t, target.Listen)
	say(t, client, "one")
	sockets := export(t, s)
	if _, err := client.Write([]byte("two")); err != nil { // while nobody reads
		t.Fatal(err)
	}
	next := newServer(t, relay.Config{Inherited: sockets})
	put(t, next, target)
	receive(t, client, "two")
	say(t, client, "three")
	until(t, "the next one has got both", func() bool { return next.Stats().Targets[target.Key].In == 8 })
}

// A socket that no Target takes is closed, and so is one that was another Target's: who waits there wants that one.
func TestInheritedSocketsThatAreOfNoUse(t *testing.T) {
	noLeak(t)
	e := named(t, "a", "127.0.0.1")
	gone, other := direct("gone", model.TCP, freePort(t, "127.0.0.1"), e), direct("other", model.TCP, freePort(t, "127.0.0.1"), e)
	s := newServer(t, relay.Config{})
	put(t, s, gone, other)
	sockets := export(t, s)
	kill(s)
	next := newServer(t, relay.Config{Inherited: sockets})
	taken := direct("taken", model.TCP, other.Listen, e)
	put(t, next, taken)
	receive(t, dial(t, taken.Listen), "a")
	dial(t, gone.Listen)
	next.DropInherited()
	wantClosed(t, gone.Listen)

	again := newServer(t, relay.Config{Inherited: export(t, next)})
	kill(next)
	again.DropInherited()
	wantClosed(t, taken.Listen)
}

// A process that is replaced before it has told of its Targets hands on what it was handed.
func TestInheritedSocketsAreHandedOn(t *testing.T) {
	noLeak(t)
	target := direct("a", model.TCP, freePort(t, "127.0.0.1"), named(t, "a", "127.0.0.1"))
	s := newServer(t, relay.Config{})
	put(t, s, target)
	between := newServer(t, relay.Config{Inherited: export(t, s)})
	last := newServer(t, relay.Config{Inherited: export(t, between)})
	put(t, last, target)
	receive(t, dial(t, target.Listen), "a")
}

// When who has borrowed the sockets dies, the Server goes on as before: who waited is served, sessions are what they were, and
// Targets can change.
func TestServerGoesOnWhenTheNextDies(t *testing.T) {
	noLeak(t)
	tcp := direct("a", model.TCP, freePort(t, "127.0.0.1"), named(t, "a", "127.0.0.1"))
	udp := direct("b", model.UDP, netip.MustParseAddrPort("127.0.0.1:10953"), udpEndpoint(t))
	s := newServer(t, relay.Config{})
	put(t, s, tcp, udp)
	client := dialUDP(t, udp.Listen)
	say(t, client, "one")
	for range 3 {
		next := newServer(t, relay.Config{Inherited: export(t, s)})
		put(t, next, tcp, udp)
		receive(t, dial(t, tcp.Listen), "a")
		kill(next)
		waits := dial(t, tcp.Listen)
		if _, err := client.Write([]byte("two")); err != nil { // while nobody reads
			t.Fatal(err)
		}
		s.Resume()
		receive(t, waits, "a")
		receive(t, client, "two")
	}
	if n := s.Stats().Targets[udp.Key]; n.Accepted != 1 {
		t.Errorf("%d sessions, want the one", n.Accepted)
	}
	s.Remove(tcp.Key)
	wantClosed(t, tcp.Listen)
}
