package udp

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
)

// cost is what the process holds.
type cost struct {
	heap       uint64 // in bytes, as the stacks
	stacks     uint64
	goroutines int
	files      int
}

func measure() cost {
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd")
	return cost{m.HeapAlloc, m.StackInuse, runtime.NumGoroutine(), len(files)}
}

func (c cost) since(before cost, sessions int) string {
	per := func(now, then uint64) int64 { return (int64(now) - int64(then)) / int64(sessions) }
	return fmt.Sprintf("%d more goroutines and %d more files; for each of %d sessions %d bytes of heap and %d of stacks",
		c.goroutines-before.goroutines, c.files-before.files, sessions, per(c.heap, before.heap), per(c.stacks, before.stacks))
}

func dialFrom(t testing.TB, from string, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP(network(to.Addr()), &net.UDPAddr{IP: net.ParseIP(from)}, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A session costs a goroutine, a file and a few KiB; a Listener without datagrams, no buffer at all.
func TestCostOfSessions(t *testing.T) {
	for _, sessions := range []int{1000, 10_000} {
		t.Run(fmt.Sprint(sessions), func(t *testing.T) {
			e := newEngine(t, Config{Now: newClock().now, Sessions: sessions, PerClient: sessions}) // none ends for being silent
			s := serve(t, "a", "127.0.0.1")
			l := listen(t, e, "0.0.0.0", s.addr())
			client := bind(t, "127.0.0.1")
			before := measure()
			openAll(t, client, l, sessions)
			if e.Sessions() != sessions {
				t.Fatalf("%d sessions, want %d", e.Sessions(), sessions)
			}
			cost := measure()
			t.Log(cost.since(before, sessions))
			if n := cost.goroutines - before.goroutines; n > sessions+openers {
				t.Errorf("%d more goroutines for %d sessions", n, sessions)
			}
			if n := cost.files - before.files; n != sessions {
				t.Errorf("%d more files for %d sessions", n, sessions)
			}
			const bound = 8 << 10
			if n := (cost.heap + cost.stacks - before.heap - before.stacks) / uint64(sessions); n > bound {
				t.Errorf("%d bytes for each session, want no more than %d", n, bound)
			}
			for _, to := range []int{0, sessions / 2, sessions - 1} { // all of them work
				exchange(t, client, l, to)
			}
			if e.Sessions() != sessions {
				t.Errorf("%d sessions when known ones have sent again, want %d", e.Sessions(), sessions)
			}
		})
	}
}

// loopback is the n-th address of the loopback interface. One client's socket has a session by each.
func loopback(n int) string { return fmt.Sprintf("127.1.%d.%d", n/250, 1+n%250) }

func openAll(t testing.TB, client *net.UDPConn, l *Listener, sessions int) {
	t.Helper()
	for i := range sessions {
		exchange(t, client, l, i)
	}
}

// exchange sends a datagram to an address of the Listener's, and awaits the answer from there.
func exchange(t testing.TB, client *net.UDPConn, l *Listener, n int) {
	t.Helper()
	to := l.to(loopback(n))
	if _, err := client.WriteToUDPAddrPort([]byte("?"), to); err != nil {
		t.Fatal(err)
	}
	var b [16]byte
	size, from, err := client.ReadFromUDPAddrPort(b[:])
	if err != nil || from != to || string(b[:size]) != "a?" {
		t.Fatalf("%q from %s, want a? from %s: %v", b[:size], from, to, err)
	}
}

func TestCostOfListeners(t *testing.T) {
	const listeners = 1000
	e := newEngine(t, Config{})
	before := measure()
	for range listeners {
		listen(t, e, "127.0.0.1")
	}
	cost := measure()
	t.Logf("for each Listener: %s", cost.since(before, listeners))
	if n := cost.goroutines - before.goroutines; n != listeners {
		t.Errorf("%d goroutines, want one each", n)
	}
	const bound = 16 << 10
	if n := (cost.heap + cost.stacks - before.heap - before.stacks) / listeners; n > bound {
		t.Errorf("%d bytes for each Listener, want no more than %d", n, bound)
	}
}
