package bench_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"sluice/internal/testkit/figures"
)

// change is one change of the API.
type change struct {
	write func(context.Context) error
	// object and event are what a watch tells of it.
	object string
	event  watch.EventType
	// service and endpoint are where a connection shows it, and who answers then; the zero address: nobody.
	service  int
	endpoint netip.Addr
}

// kind is a kind of changes.
type kind struct {
	what string
	// change is the i-th of a turn.
	change func(a *arena, i int) change
}

// kinds are in an order in which the next one deletes what one creates.
func kinds() []kind {
	return []kind{{"endpoint replaced", replaced}, {"Service created", created}, {"Service deleted", deleted}}
}

func replaced(a *arena, i int) change {
	a.version++
	service, to := target(i%targets), answering(a.version)
	return change{
		write:  func(ctx context.Context) error { return a.point(ctx, service, to) },
		object: "EndpointSlice " + name(service), event: watch.Modified, service: service, endpoint: to,
	}
}

func created(a *arena, i int) change {
	return change{
		write:  func(ctx context.Context) error { return a.create(ctx, slot(i)) },
		object: "Service " + name(slot(i)), event: watch.Added, service: slot(i), endpoint: answering(0),
	}
}

func deleted(a *arena, i int) change {
	return change{
		write:  func(ctx context.Context) error { return a.delete(ctx, slot(i)) },
		object: "Service " + name(slot(i)), event: watch.Deleted, service: slot(i),
	}
}

// timing is how long changes of one kind took, from when the API was asked to write.
type timing struct {
	written  []time.Duration // until a connection showed it
	heard    []time.Duration // until a bare watch told of it
	answered []time.Duration // until the API answered
	cpu      time.Duration   // of the subject for all of them
}

// changes has all take turns.
func (a *arena) changes() *figures.Grid {
	a.Helper()
	for range *rounds {
		for _, s := range a.subjects {
			for _, k := range kinds() {
				s.try(k)
			}
		}
	}
	g := &figures.Grid{Head: []string{"from the write to a connection that shows it", "changes", "ms, p50", "p95", "longest", "after a bare watch, p50", "p95", "CPU ms for each"}}
	for _, k := range kinds() {
		var answered, heard []time.Duration
		for _, s := range a.subjects {
			t := s.times[k.what]
			answered, heard = append(answered, t.answered...), append(heard, t.heard...)
		}
		g.Add(append(times(k.what+": the API answers", answered), "", "", "")...)
		g.Add(append(times(k.what+": a bare watch tells of it", heard), "", "", "")...)
		for _, s := range a.subjects {
			t := s.times[k.what]
			late := t.later()
			g.Add(append(times(k.what+": "+s.name, t.written), ms(quantile(late, 0.5)), ms(quantile(late, 0.95)), ms(t.cpu/time.Duration(len(late))))...)
		}
	}
	return g
}

func times(what string, all []time.Duration) []string {
	return []string{what, fmt.Sprint(len(all)), ms(quantile(all, 0.5)), ms(quantile(all, 0.95)), ms(quantile(all, 1))}
}

// later is how much later than a bare watch told of them connections showed the changes.
func (t *timing) later() (all []time.Duration) {
	for i, w := range t.written {
		all = append(all, w-t.heard[i])
	}
	return all
}

// try measures some changes of one kind.
func (s *subject) try(k kind) {
	s.arena.Helper()
	t := s.times[k.what]
	if t == nil {
		t = &timing{}
		s.times[k.what] = t
	}
	t.cpu += s.turn(func() {
		for i := range s.samples {
			time.Sleep(s.interval + 250*time.Millisecond) // it has finished the one before, and may write at once
			s.measure(k.change(s.arena, i), t)
		}
	})
}

// measure makes a change.
func (s *subject) measure(c change, t *timing) {
	a := s.arena
	a.Helper()
	begun, ended := make(chan struct{}), make(chan error, 1)
	var at time.Time
	go func() {
		var err error
		at, err = s.line(clusterIP(c.service)).until(c.endpoint, begun)
		ended <- err
	}()
	<-begun
	start := time.Now()
	err := c.write(a.Context())
	answered := time.Since(start)
	if err = errors.Join(err, <-ended); err != nil {
		a.Fatalf("%s: %v", s.name, err)
	}
	t.written, t.answered = append(t.written, at.Sub(start)), append(t.answered, answered)
	t.heard = append(t.heard, a.hearing.of(a, c.object, c.event, start))
}

// quantile is that of at least one time; 1 is the longest.
func quantile(times []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// ms has three digits that count.
func ms(d time.Duration) string {
	v := float64(d.Nanoseconds()) / 1e6
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
