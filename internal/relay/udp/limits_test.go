package udp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/relay/count"
)

// Of sessions that are no streams, the one that has been silent for longest goes.
func TestOldestIsDisplaced(t *testing.T) {
	clock := newClock()
	e := newEngine(t, Config{Now: clock.now, Sessions: 3, PerClient: 3})
	s := serve(t, "a", "127.0.0.1")
	l := listen(t, e, "127.0.0.1", s.addr())
	stream, old, busy := dial(t, l.Addr()), dial(t, l.Addr()), dial(t, l.Addr())
	expect(t, stream, "a?")
	clock.forward(time.Second)
	expect(t, old, "a?")
	clock.forward(2 * time.Second)
	expect(t, stream, "a?")
	expect(t, busy, "a?")
	clock.forward(time.Second)
	expect(t, dial(t, l.Addr()), "a?")
	if n := l.Stats().Ended[Displaced]; n != 1 || e.Sessions() != 3 {
		t.Errorf("%d sessions displaced and %d open, want 1 and 3", n, e.Sessions())
	}
	expect(t, stream, "a?")
	expect(t, busy, "a?")
	if n := l.Stats().Ended[Displaced]; n != 1 {
		t.Errorf("%d sessions displaced, want the oldest alone", n)
	}
}

// Where all are streams, new ones are refused.
func TestStreamsAreNotDisplaced(t *testing.T) {
	clock := newClock()
	e := newEngine(t, Config{Now: clock.now, Sessions: 2, PerClient: 2})
	l := listen(t, e, "127.0.0.1", serve(t, "a", "127.0.0.1").addr())
	for range 2 {
		client := dial(t, l.Addr())
		expect(t, client, "a?")
		clock.forward(youth + 1)
		expect(t, client, "a?")
	}
	late := dial(t, l.Addr())
	if _, err := late.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is refused", func() bool { return l.Counts().Refused[count.Limit] == 1 })
	if s := l.Stats(); s.Dropped[Limit] != 1 || s.Ended[Displaced] != 0 || e.Sessions() != 2 {
		t.Errorf("%+v and %d sessions, want one datagram dropped and the streams", s, e.Sessions())
	}
}

// One client cannot have all: it displaces its own.
func TestShareOfOneClient(t *testing.T) {
	e := newEngine(t, Config{Sessions: 10, PerClient: 3})
	l := listen(t, e, "0.0.0.0", serve(t, "a", "127.0.0.1").addr())
	modest := dialFrom(t, "127.0.0.77", l.to("127.0.0.1"))
	expect(t, modest, "a?")
	for range 8 {
		expect(t, dial(t, l.to("127.0.0.1")), "a?")
	}
	if n := l.Stats().Ended[Displaced]; n != 5 || e.Sessions() != 4 {
		t.Errorf("%d displaced and %d open, want 5 and 4", n, e.Sessions())
	}
	expect(t, modest, "a?")
	if n := l.Counts().Accepted; n != 9 {
		t.Errorf("%d sessions were begun, want 9: the modest client has had one", n)
	}
}

// A flood from thousands of addresses leaves streams alone, and takes no more than the limits.
func TestFloodLeavesStreamsAlone(t *testing.T) {
	clock := newClock()
	const limit = 200
	e := newEngine(t, Config{Now: clock.now, Sessions: limit, PerClient: 50})
	s := serve(t, "a", "127.0.0.1")
	l := listen(t, e, "0.0.0.0", s.addr())
	stream := dial(t, l.to("127.0.0.1"))
	expect(t, stream, "a?")
	clock.forward(youth + 1)
	expect(t, stream, "a?")
	before := measure()
	for round := range 20 {
		for i := range 250 {
			flood := dialFrom(t, fmt.Sprintf("127.9.%d.%d", round, i+1), l.to("127.0.0.1"))
			_, _ = flood.Write(make([]byte, 1000))
			_ = flood.Close()
		}
		insist(t, stream, "a?")
		if n := e.Sessions(); n > limit {
			t.Fatalf("%d sessions, limit %d", n, limit)
		}
	}
	eventually(t, "all sessions are open", func() bool { return l.waiting.Load() == 0 })
	after := measure()
	t.Logf("5000 clients: %s", after.since(before, limit))
	if n := after.files - before.files; n > limit {
		t.Errorf("%d more files, want no more than a session each", n)
	}
	if s := l.Stats(); s.Ended[Displaced]+s.Dropped[Backlog] < 1000 {
		t.Errorf("%+v: that was no flood", s)
	}
	e.limits.mu.Lock()
	known := len(e.limits.clients)
	e.limits.mu.Unlock()
	if known > limit {
		t.Errorf("%d clients are known, limit %d", known, limit)
	}
	insist(t, stream, "a?")
}

// insist is expect for where datagrams may get lost on the way: the endpoint's socket has less room than a Listener's.
func insist(t *testing.T, c *net.UDPConn, want string) {
	t.Helper()
	got := make([]byte, 16)
	eventually(t, "an answer", func() bool {
		if _, err := c.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, err := c.Read(got)
		if err != nil {
			return false
		}
		got = got[:n]
		return true
	})
	if string(got) != want {
		t.Fatalf("the answer is %q, want %q", got, want)
	}
}

// Clients that wait for sessions to open do not keep the reader from those that have one.
func TestBacklogHoldsUpNobody(t *testing.T) {
	e := newEngine(t, Config{Sessions: 4096, PerClient: 4096})
	s := serve(t, "a", "127.0.0.1")
	gate := make(chan struct{})
	l := listenFor(t, e, Target{
		Listen: netip.MustParseAddrPort("0.0.0.0:0"), Picker: picker(e, s.addr()),
		Original: func(client, local netip.AddrPort) (netip.AddrPort, bool) {
			if client.Addr() != netip.MustParseAddr("127.0.0.1") {
				<-gate
			}
			return local, true
		},
	})
	served := dial(t, l.to("127.0.0.1"))
	expect(t, served, "a?")
	for i := range maxWaiting + 20 {
		waits := dialFrom(t, fmt.Sprintf("127.9.0.%d", i+1), l.to("127.0.0.1"))
		_, _ = waits.Write([]byte("?"))
	}
	eventually(t, "20 are dropped", func() bool { return l.Stats().Dropped[Backlog] == 20 })
	expect(t, served, "a?")
	close(gate)
	eventually(t, "the others are served", func() bool { return s.got.Load() == maxWaiting+2 })
}

// The books of the limits against plain counting.
func TestLimitsCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLimits(rapid.IntRange(1, 12).Draw(t, "all"), rapid.IntRange(1, 5).Draw(t, "per client"))
		var open []*session
		now := int64(0)
		streams := map[*session]bool{}
		some := func() *session { return rapid.SampledFrom(open).Draw(t, "session") }
		gone := func(s *session) { open = slices.DeleteFunc(open, func(o *session) bool { return o == s }) }
		mine := func(s *session, all []*session) (of []*session) {
			for _, o := range all {
				if o.client.Addr() == s.client.Addr() {
					of = append(of, o)
				}
			}
			return of
		}
		begin := func(t *rapid.T) {
			now++
			s := &session{}
			s.client = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 4).Draw(t, "client"))}), 1)
			s.last.Store(now)
			candidates, full := open, len(open) >= l.all
			if own := mine(s, open); len(own) >= l.perClient {
				candidates, full = own, true
			}
			var want *session
			for _, c := range candidates {
				if !streams[c] && (want == nil || c.last.Load() < want.last.Load()) {
					want = c
				}
			}
			got, ok := l.admit(s)
			switch {
			case !full && (!ok || got != nil), full && (want == nil) == ok, full && ok && got == nil:
				t.Fatalf("admitted: %v, full: %v, one to go: %v", ok, full, want != nil)
			case full && got != want:
				t.Fatal("the wrong session goes")
			}
			if got != nil {
				gone(got)
			}
			if ok {
				open = append(open, s)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": begin,
			"touch": func(*rapid.T) {
				if now++; len(open) > 0 {
					some().last.Store(now)
				}
			},
			"settle": func(*rapid.T) {
				if len(open) > 0 {
					s := some()
					l.settle(s)
					streams[s] = true
				}
			},
			"release": func(*rapid.T) {
				if len(open) > 0 {
					s := some()
					l.release(s)
					l.release(s)
					gone(s)
				}
			},
			"": func(t *rapid.T) {
				if l.n != len(open) {
					t.Fatalf("%d are counted of %d", l.n, len(open))
				}
				young := 0
				for _, s := range open {
					if !streams[s] {
						young++
					}
					if n := l.clients[s.client.Addr()].n; n != len(mine(s, open)) {
						t.Fatalf("%d are counted of %s, want %d", n, s.client.Addr(), len(mine(s, open)))
					}
				}
				if l.young.Len() != young {
					t.Fatalf("%d could go, want %d", l.young.Len(), young)
				}
			},
		})
		for len(open) > 0 {
			l.release(open[0])
			open = open[1:]
		}
		if len(l.clients) != 0 || l.n != 0 {
			t.Fatalf("%d clients are known and %d sessions counted when all have ended", len(l.clients), l.n)
		}
	})
}
