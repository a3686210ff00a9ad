package udp

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"sluice/internal/kernel/datagram"
	"sluice/internal/relay/count"
	"sluice/internal/relay/hops"
)

// What Config has where it does not say.
const (
	DefaultSessions   = 1 << 14
	DefaultIdle       = 30 * time.Second  // nf_conntrack_udp_timeout
	DefaultStreamIdle = 120 * time.Second // nf_conntrack_udp_timeout_stream
)

const (
	// lentBuffers is how many answers are on their way from a socket to another at a time, at 64 KiB each.
	lentBuffers = 32
	// openers is how many sessions are opened at a time. More may wait.
	openers = 8
	// sweepEvery is how often sessions are looked at that may have been silent for too long.
	sweepEvery = time.Second
)

// ErrStopped is what an Engine says that was told to stop.
var ErrStopped = errors.New("the relay of datagrams has stopped")

// Config is what an Engine needs. Its zero value is of use.
type Config struct {
	// In runs f where sockets are to be made, such as in a network namespace, and returns its error. Nil: here.
	In func(f func() error) error
	// Sessions bounds those of all Listeners, each of which has a socket. 0: DefaultSessions.
	Sessions int
	// PerClient bounds those of one client address. 0: a quarter of Sessions.
	PerClient int
	// Idle is how long a session lives without a datagram, StreamIdle one that is a stream. 0: the defaults.
	Idle, StreamIdle time.Duration
	// Source is that of [hops.NewSet].
	Source func(hops.Way) netip.AddrPort
	// Total counts the sessions of all Listeners, as connections, and their bytes. Nil: nobody asks.
	Total *count.Counter
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Engine holds what Listeners share. [New] makes one; it is safe for concurrent use.
type Engine struct {
	config  Config
	limits  *limits
	buffers *datagram.Buffers
	batches batches
	openers chan struct{}
	backlog backlog
	stats   counters
	hops    *hops.Set // sockets of sessions

	mu        sync.Mutex
	listeners map[*Listener]struct{}
	stopped   bool
	done      chan struct{} // closed when it stops sweeping
	sweeper   sync.WaitGroup
}

// New makes an Engine without Listeners. [Engine.Stop] ends it.
func New(c Config) *Engine {
	c.complete()
	e := &Engine{
		config:    c,
		limits:    newLimits(c.Sessions, c.PerClient),
		buffers:   datagram.NewBuffers(lentBuffers),
		batches:   newBatches(),
		openers:   make(chan struct{}, openers),
		listeners: map[*Listener]struct{}{},
		done:      make(chan struct{}),
		hops:      hops.NewSet(c.Source),
	}
	e.sweeper.Go(e.keepSweeping)
	return e
}

func (c *Config) complete() {
	if c.In == nil {
		c.In = func(f func() error) error { return f() }
	}
	if c.Sessions == 0 {
		c.Sessions = DefaultSessions
	}
	if c.PerClient == 0 {
		c.PerClient = max(1, c.Sessions/4)
	}
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	if c.StreamIdle == 0 {
		c.StreamIdle = DefaultStreamIdle
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

// Sessions is how many there are.
func (e *Engine) Sessions() int { return e.limits.open() }

// Stop ends all Listeners: what clients send is not read any more, and answers are passed on until their sessions have
// been silent for [Linger], or ctx is done. Then it returns ctx's error.
func (e *Engine) Stop(ctx context.Context) error {
	listeners := e.all(true)
	for _, l := range listeners {
		l.Stop()
	}
	err := e.await(ctx)
	for _, l := range listeners {
		l.Close()
	}
	e.mu.Lock()
	select {
	case <-e.done:
	default:
		close(e.done)
	}
	e.mu.Unlock()
	e.sweeper.Wait()
	return err
}

// await returns when there are no sessions, or ctx is done.
func (e *Engine) await(ctx context.Context) error {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for e.Sessions() > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (e *Engine) all(stop bool) []*Listener {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = e.stopped || stop
	out := make([]*Listener, 0, len(e.listeners))
	for l := range e.listeners {
		out = append(out, l)
	}
	return out
}

func (e *Engine) keep(l *Listener) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return ErrStopped
	}
	e.listeners[l] = struct{}{}
	return nil
}

func (e *Engine) forget(l *Listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.listeners, l)
}
