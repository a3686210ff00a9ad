package relay_test

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/relay"
)

// Whatever Targets come, change, move and go: each port is listened at for exactly the Target that has it, and clients
// get one of its endpoints.
func TestAtRandom(t *testing.T) {
	var endpoints []netip.AddrPort
	for _, name := range []string{"0", "1", "2"} {
		endpoints = append(endpoints, named(t, name, "127.0.0.1"))
	}
	var ports []netip.AddrPort
	for range 4 {
		ports = append(ports, freePort(t, "127.0.0.1"))
	}
	noLeak(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := newServerOf(t, rt)
		want := map[relay.Key]relay.Target{}
		target := rapid.Custom(func(rt *rapid.T) relay.Target {
			n := rapid.IntRange(1, 2).Draw(rt, "endpoints")
			first := rapid.IntRange(0, 1).Draw(rt, "first")
			return direct(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name"), model.TCP,
				rapid.SampledFrom(ports).Draw(rt, "at"), endpoints[first:first+n]...)
		})
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				next := target.Draw(rt, "target")
				owner, taken := ownerOf(want, next.Listen)
				err := s.Put(next)
				if failed := err != nil; failed != (taken && owner.Key != next.Key) {
					rt.Fatalf("put %s at %s: %v", next.Key, next.Listen, err)
				}
				if err == nil {
					want[next.Key] = next
				}
			},
			"remove": func(rt *rapid.T) {
				k := target.Draw(rt, "target").Key
				if rapid.Bool().Draw(rt, "gone") {
					s.Remove(k)
				} else {
					s.Close(k)
				}
				delete(want, k)
			},
			"": func(rt *rapid.T) {
				for _, at := range ports {
					check(rt, want, endpoints, at)
				}
			},
		})
	})
}

func newServerOf(t *testing.T, rt *rapid.T) *relay.Server {
	t.Helper()
	s, err := relay.New(relay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rt.Cleanup(func() { _ = s.Stop(t.Context()) })
	return s
}

func ownerOf(targets map[relay.Key]relay.Target, at netip.AddrPort) (relay.Target, bool) {
	for _, t := range targets {
		if t.Listen == at {
			return t, true
		}
	}
	return relay.Target{}, false
}

func check(rt *rapid.T, want map[relay.Key]relay.Target, endpoints []netip.AddrPort, at netip.AddrPort) {
	owner, taken := ownerOf(want, at)
	c, err := net.DialTimeout("tcp", at.String(), patience)
	if (err == nil) != taken {
		rt.Fatalf("dial %s: %v; listened at: %v", at, err, taken)
	}
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	name := make([]byte, 1)
	if _, err := io.ReadFull(c, name); err != nil {
		rt.Fatalf("%s at %s: %v", owner.Key, at, err)
	}
	for _, e := range owner.Endpoints {
		if endpoints[name[0]-'0'] == e.AddrPort {
			return
		}
	}
	rt.Fatalf("%s at %s: endpoint %s is none of it", owner.Key, at, name)
}
