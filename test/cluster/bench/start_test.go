package bench_test

import (
	"errors"
	"fmt"
	"time"

	"sluice/internal/testkit/figures"
	"sluice/test/cluster"
)

// listings is how often the bare list is measured, of which the median counts.
const listings = 3

// starts starts all, one after the other, each on a node without any rule.
func (a *arena) starts() *figures.Grid {
	a.Helper()
	g := &figures.Grid{Head: []string{"start", "CPU s", "beyond the list", "CPU s until it rests", "elapsed s", "MiB at rest", "MiB at its peak", "with its children"}}
	list := a.list()
	g.Add("a bare list", seconds(list.cpu), "", seconds(list.cpu), seconds(list.elapsed), "", mebibytes(list.peak), "")
	for _, s := range a.subjects {
		elapsed, until, after := s.begin()
		g.Add(s.name, seconds(until.CPU), seconds(until.CPU-list.cpu), seconds(after.CPU), seconds(elapsed), mebibytes(after.RSS), mebibytes(after.Peak), mebibytes(s.most))
	}
	return g
}

// begin starts it, and returns how long that took, and what was used until all was written and until it came to rest.
func (s *subject) begin() (elapsed time.Duration, complete, rested cluster.Usage) {
	a := s.arena
	a.Helper()
	start := time.Now()
	s.proxy = s.start(a.Cluster, a, s.node, cluster.ProxyOptions{Mode: s.mode, Config: s.config})
	stop := s.watchMemory()
	for _, i := range []int{0, stable - 1, target(0), target(targets - 1)} {
		s.wait(i)
	}
	s.proxy.WaitSynced(a)
	elapsed, complete = time.Since(start), s.usage()
	rested = s.rest()
	time.Sleep(time.Second) // for a runtime to give back what it no longer needs
	rested.RSS = s.usage().RSS
	stop()
	s.proxy.Pause(a)
	return elapsed, complete, rested
}

// wait waits until a Service answers.
func (s *subject) wait(i int) {
	a := s.arena
	a.Helper()
	cluster.WaitFor(a, fmt.Sprintf("%s to serve Service %d", s.name, i), func() error {
		return s.host.Pods.Do(func() error {
			if !s.line(clusterIP(i)).connect(sure).IsValid() {
				return errors.New("nobody answers")
			}
			return nil
		})
	})
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

func mebibytes(n int64) string { return fmt.Sprintf("%.0f", float64(n)/(1<<20)) }
