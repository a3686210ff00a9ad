package bench_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sluice/internal/testkit/figures"
)

// perSecond is how many changes there are. Every fourth gives one of the targets another endpoint, by which it is seen
// how far the subject has come; the others change the crowd.
const perSecond = 50

// versions are how many addresses the first endpoint of a Service of the crowd may have, and mostEndpoints the most that
// it has for a while.
const (
	versions      = 20
	mostEndpoints = 12
)

// churns has Services change constantly for each subject in turn.
func (a *arena) churns() *figures.Grid {
	a.Helper()
	g := &figures.Grid{Head: []string{
		fmt.Sprintf("%d changes a second for %s", perSecond, *churn),
		"changes", "delay ms, p50", "p95", "longest", "after a bare watch, p50", "p95", "CPU ms for each change",
		"connections to Services that stay", "failed", "first packets repeated", "MiB afterwards", "MiB at its peak", "with its children",
	}}
	for _, s := range a.subjects {
		r := s.churn()
		u := s.usage()
		g.Add(s.name, fmt.Sprint(r.changes), ms(quantile(r.delays, 0.5)), ms(quantile(r.delays, 0.95)), ms(quantile(r.delays, 1)), ms(quantile(r.late, 0.5)), ms(quantile(r.late, 0.95)), ms(r.cpu/time.Duration(r.changes)),
			fmt.Sprint(r.connections), fmt.Sprint(r.failed), fmt.Sprint(r.repeated), mebibytes(u.RSS), mebibytes(u.Peak), mebibytes(s.most))
	}
	return g
}

// turmoil is what constant change did.
type turmoil struct {
	changes int
	// delays are from the write of another endpoint, and late from when a bare watch told of it.
	delays, late []time.Duration
	cpu          time.Duration
	crowdTally
}

func (s *subject) churn() (r turmoil) {
	s.arena.Helper()
	r.cpu = s.turn(func() {
		stay := s.connectToStable()
		w := newWriters(s)
		r.changes = w.run()
		r.delays, r.late = w.watched.wait()
		r.crowdTally = stay()
	})
	return r
}

// writers make changes at a steady pace, those of one Service one after the other.
type writers struct {
	*subject
	watched *watched
	rnd     *rand.Rand
	queues  [4]chan func(context.Context) error
	gone    map[int]bool
}

func newWriters(s *subject) *writers {
	w := &writers{subject: s, watched: observe(s), rnd: rand.New(rand.NewPCG(1, 1)), gone: map[int]bool{}}
	for i := range w.queues {
		w.queues[i] = make(chan func(context.Context) error, 10_000)
	}
	return w
}

// run makes all changes, and then has the crowd as it was.
func (w *writers) run() (changes int) {
	a := w.arena
	a.Helper()
	var g errgroup.Group
	for _, q := range w.queues {
		g.Go(func() error {
			for change := range q {
				if err := change(a.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	pace := time.NewTicker(time.Second / perSecond)
	defer pace.Stop()
	for end := time.Now().Add(*churn); time.Now().Before(end); changes++ {
		i, change := w.next(changes)
		w.queues[i%len(w.queues)] <- change
		<-pace.C
	}
	for i := range w.gone {
		w.queues[i%len(w.queues)] <- func(ctx context.Context) error { return a.create(ctx, i) }
	}
	for _, q := range w.queues {
		close(q)
	}
	if err := g.Wait(); err != nil {
		a.Fatal(err)
	}
	return changes + len(w.gone)
}

// next is the n-th change, and the Service that it is of: of the crowd, mostly another endpoint, now and then more or
// fewer of them, none, or the whole Service.
func (w *writers) next(n int) (service int, change func(context.Context) error) {
	a := w.arena
	if n%4 == 0 {
		return w.watched.next(n / 4 % targets)
	}
	i := stable + w.rnd.IntN(*services-stable)
	if w.gone[i] {
		delete(w.gone, i)
		return i, func(ctx context.Context) error { return a.create(ctx, i) }
	}
	count, version := *endpoints, w.rnd.IntN(versions)
	switch w.rnd.IntN(10) {
	case 0:
		w.gone[i] = true
		return i, func(ctx context.Context) error { return a.delete(ctx, i) }
	case 1, 2:
		count = w.rnd.IntN(mostEndpoints + 1)
	}
	return i, func(ctx context.Context) error { return a.point(ctx, i, crowd(i, count, version)...) }
}

// watched are the targets while their endpoints change: each version is another address, so that a connection tells how
// far the subject has come.
type watched struct {
	*subject
	wg sync.WaitGroup

	mu     sync.Mutex           // guards the following
	writes [targets][]time.Time // by version
	seen   [targets][]time.Time // and when the first connection arrived at it, or at a later one
	ended  bool                 // there will be no more writes
}

// observe begins to connect to the targets.
func observe(s *subject) *watched {
	w := &watched{subject: s}
	for i := range targets {
		first := make(chan struct{})
		w.wg.Go(func() { w.follow(i, first) })
		<-first
	}
	return w
}

// next is the next change of a target.
func (w *watched) next(i int) (service int, change func(context.Context) error) {
	return target(i), func(ctx context.Context) error {
		w.mu.Lock()
		w.writes[i] = append(w.writes[i], time.Now())
		to := w.address(len(w.writes[i]))
		w.mu.Unlock()
		return w.arena.point(ctx, target(i), to)
	}
}

// address is that of the n-th version, which is none that the target had before.
func (w *watched) address(n int) netip.Addr { return answering(w.arena.version + n) }

// follow connects to a target until the last version is seen.
func (w *watched) follow(i int, first chan<- struct{}) {
	l := w.line(clusterIP(target(i)))
	err := w.host.Pods.Do(func() error {
		l.connect(time.Second)
		close(first)
		for start := time.Now(); time.Since(start) < *churn+limit; time.Sleep(2 * time.Millisecond) {
			if endpoint := l.connect(time.Second); w.saw(i, endpoint) {
				return nil
			}
		}
		return fmt.Errorf("%s: the last endpoint of %s is not seen", w.name, l.to)
	})
	if err != nil {
		w.arena.Error(err)
	}
}

// saw notes that an endpoint has answered, which tells of its version and all before it. It reports whether that is the
// last one.
func (w *watched) saw(i int, endpoint netip.Addr) (last bool) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := len(w.seen[i]); n < len(w.writes[i]); n++ {
		if w.address(n+1) != endpoint {
			continue
		}
		for len(w.seen[i]) <= n {
			w.seen[i] = append(w.seen[i], now)
		}
	}
	return w.ended && len(w.seen[i]) == len(w.writes[i])
}

// wait waits until all versions are seen, and returns how long each took, from the write and from when a bare watch told
// of it.
func (w *watched) wait() (delays, late []time.Duration) {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.wg.Wait()
	a, most := w.arena, 0
	a.Helper()
	for i := range targets {
		for n, seen := range w.seen[i] {
			delays = append(delays, seen.Sub(w.writes[i][n]))
			late = append(late, seen.Sub(a.hearing.pointing(a, target(i), w.address(n+1), w.writes[i][n])))
		}
		most = max(most, len(w.writes[i]))
	}
	a.version += most
	return delays, late
}
