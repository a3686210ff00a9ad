package kube

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// pace is how long things wait for one another.
type pace struct {
	// first and most bound the wait before the next try; with jitter, it can be twice as long.
	first, most time.Duration
	// slow is the wait for a kind that the server refuses and that is not needed.
	slow time.Duration
	// patience is how long the first Change waits for a kind that is not needed.
	patience time.Duration
}

// usualPace is client-go's but for most, which is 30 s there: a node should not be behind for long once its API server
// is back.
var usualPace = pace{first: 800 * time.Millisecond, most: 10 * time.Second, slow: time.Minute, patience: 10 * time.Second}

// backoffReset is how long all has to be well before the next failure counts as the first.
const backoffReset = 2 * time.Minute

func (p *pace) backoff() wait.Backoff {
	return wait.Backoff{Duration: p.first, Cap: p.most, Steps: 30, Factor: 2, Jitter: 1}
}

func (c *Client) watch(ctx context.Context, node string, notify func(Change)) error {
	l := newLedger(kinds(node), c.link)
	following := withLibraryLog(ctx, c.log)
	var followers sync.WaitGroup
	for _, s := range l.stores {
		followers.Go(func() { c.follow(following, s) })
	}
	l.deliver(ctx, c.pace.patience, func(change Change) {
		c.link.told()
		notify(change)
	})
	followers.Wait()
	return nil
}

// follow lists and watches one kind until ctx ends. This is the reflector's own loop, but that a kind that is refused
// and not needed is asked for at a slow pace.
func (c *Client) follow(ctx context.Context, s *store) {
	backoff, clock := c.pace.backoff(), &retryClock{done: ctx.Done(), link: c.link}
	r := cache.NewReflectorWithOptions(c.listWatch(s.kind), nil, s, cache.ReflectorOptions{
		Name: s.kind.resource, TypeDescription: s.kind.name, Clock: clock, Backoff: &backoff,
	})
	delay := backoff.DelayWithReset(clock, backoffReset)
	for ctx.Err() == nil {
		err := r.ListAndWatchWithContext(ctx)
		s.link.ended()
		next := delay()
		if err != nil {
			s.failed(err)
		}
		if s.kind.optional && faultOf(err) == refused {
			next = wait.Jitter(c.pace.slow, 1)
		}
		<-clock.After(next)
	}
}

// retryClock is real time, but that a wait is over when a context is done, or when the server is well again. The
// reflector waits by it between two tries, and looks at its context only then.
type retryClock struct {
	clock.RealClock
	done <-chan struct{}
	link *link
}

// After gives the time when the wait is over.
func (c *retryClock) After(d time.Duration) <-chan time.Time {
	out, woken := make(chan time.Time, 1), c.link.waker()
	go func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-c.done:
		case <-woken:
		case <-t.C:
		}
		out <- time.Now()
	}()
	return out
}
