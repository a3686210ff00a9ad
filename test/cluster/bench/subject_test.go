package bench_test

import (
	"testing"
	"time"

	"sluice/test/cluster"
)

// subject is one who is measured, on a node of its own.
type subject struct {
	name, node, mode, config string

	start func(*cluster.Cluster, testing.TB, string, cluster.ProxyOptions) *cluster.Proxy
	// samples is how many changes of each kind it is given in a turn.
	samples int
	// interval is how long it lets a change wait after it has written another: its minSyncPeriod, where it keeps to that.
	interval time.Duration

	arena *arena
	index int
	host  *cluster.Node
	proxy *cluster.Proxy
	times map[string]*timing // by kind of change
	most  int64              // the most memory that it had together with its children
}

// usage is what it has used so far.
func (s *subject) usage() cluster.Usage {
	s.arena.Helper()
	u, err := s.proxy.Usage()
	if err != nil {
		s.arena.Fatal(err)
	}
	return u
}

// tick is the unit in which the kernel tells CPU time.
const tick = 10 * time.Millisecond

// rest waits until it has nothing to do any more, and returns what it has used until then. Hardly anything is nothing:
// timers go off everywhere.
func (s *subject) rest() cluster.Usage {
	s.arena.Helper()
	before := s.usage()
	for start := time.Now(); time.Since(start) < limit; {
		time.Sleep(s.interval + 400*time.Millisecond)
		now := s.usage()
		if now.CPU-before.CPU <= tick && now.Children == 0 {
			return now
		}
		before = now
	}
	s.arena.Fatalf("%s does not come to rest in %s", s.name, limit)
	return before
}

// turn lets it alone run, and come to rest before f and after it. It returns the CPU time that f took it.
func (s *subject) turn(f func()) time.Duration {
	s.arena.Helper()
	s.proxy.Resume(s.arena)
	before := s.rest()
	stop := s.watchMemory()
	f()
	after := s.rest()
	stop()
	s.proxy.Pause(s.arena)
	return after.CPU - before.CPU
}

// watchMemory notes the most memory that it has together with the programs that it runs, until it is stopped.
func (s *subject) watchMemory() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			if u, err := s.proxy.Usage(); err == nil {
				s.most = max(s.most, u.RSS+u.Children, u.Peak)
			}
			select {
			case <-quit:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() { close(quit); <-done }
}
