package relay_test

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"sluice/internal/model"
	"sluice/internal/relay"
)

// A thousand Targets of each protocol come and go, with clients, and leave nothing: no open file, no goroutine, no memory.
func TestTargetsLeaveNothing(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{})
	tcp, udp := named(t, "a", "127.0.0.1"), udpEndpoint(t)
	comeAndGo(t, s, tcp, udp) // what stays for ever is there by now
	before, heap := openFiles(t), inUse()
	for range 3 {
		comeAndGo(t, s, tcp, udp)
	}
	const pipes = 2 * 64 // that are kept for whoever needs one next
	until(t, "all files are closed", func() bool { return openFiles(t) <= before+pipes })
	if more := inUse() - heap; more > 1<<20 {
		t.Errorf("%d bytes of memory are left", more)
	}
}

func comeAndGo(t *testing.T, s *relay.Server, tcp, udp netip.AddrPort) {
	t.Helper()
	var targets []relay.Target
	for i := range 1000 {
		at := netip.AddrPortFrom(tcp.Addr(), uint16(20000+i))
		name := fmt.Sprint("s", i)
		targets = append(targets, direct(name, model.TCP, at, tcp), direct(name, model.UDP, at, udp))
	}
	put(t, s, targets...)
	for i := 0; i < len(targets); i += 20 {
		if err := visit(targets[i].Listen); err != nil {
			t.Fatal(err)
		}
		client := dialUDP(t, targets[i+1].Listen)
		say(t, client, "hello")
		_ = client.Close()
	}
	for _, target := range targets {
		s.Remove(target.Key)
	}
	until(t, "all connections have ended", func() bool { return s.Stats().Total.Open == 0 })
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func inUse() int64 {
	runtime.GC()
	runtime.GC() // what the first has only put aside
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
