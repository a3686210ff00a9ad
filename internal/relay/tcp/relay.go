package tcp

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/relay/count"
	"sluice/internal/relay/hops"
)

// What a Config does not say.
const (
	DefaultDialTimeout = 5 * time.Second
	DefaultDialTotal   = 20 * time.Second
	DefaultPipes       = 256
	DefaultLook        = 10 * time.Second
)

// share is how many times what is still free a Listener may have open. One alone gets share/(share+1) of all; however
// many take what they can, each gets the same, and the part of one free connection in so many remains for the next.
// A fixed part for each would be too small for one or let a few take everything.
const share = 4

// keepAlive finds a peer that is gone without a word within three minutes. Connections that are idle stay for ever.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 8}

// Config is what a Relay needs.
type Config struct {
	Log *slog.Logger
	// In runs f where sockets are to be made and returns its error.
	In func(f func() error) error
	// Connections is how many may be open, which is at least 1.
	Connections int
	// Pipes is how many there may be; more bytes than these hold are copied. 0: DefaultPipes. Negative: none.
	Pipes int
	// DialTimeout bounds one attempt to reach an endpoint, DialTotal all of them for one connection. 0: the defaults.
	DialTimeout, DialTotal time.Duration
	// Look is how often senders are looked at whose receiver takes nothing: that they are gone is not told otherwise. 0: the
	// default.
	Look time.Duration
	// Source is that of [hops.NewSet].
	Source func(hops.Way) netip.AddrPort
	// Total is the parent of all counters.
	Total *count.Counter
}

// Relay is what all Listeners share. It is safe for concurrent use.
type Relay struct {
	config Config
	dialer net.Dialer
	pipes  *pipes
	spare  *spare
	full   count.Occasion // the limit was reached
	open   atomic.Int64
	hops   *hops.Set // connections to endpoints

	live    context.Context // ends when what is open is cut off
	die     context.CancelFunc
	running sync.WaitGroup // connections
	looking sync.WaitGroup

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// New makes a Relay. [Relay.Close] lets go of what it holds.
func New(c Config) *Relay {
	c.defaults()
	r := &Relay{
		config: c,
		dialer: net.Dialer{Timeout: c.DialTimeout, KeepAlive: -1 /* set once it is connected */, Control: keepUrgent},
		pipes:  newPipes(c.Pipes),
		spare:  newSpare(),
		hops:   hops.NewSet(c.Source),
		conns:  map[*conn]struct{}{},
	}
	r.live, r.die = context.WithCancel(context.Background())
	r.looking.Go(r.keepLooking)
	return r
}

func (c *Config) defaults() {
	if c.DialTimeout == 0 {
		c.DialTimeout = DefaultDialTimeout
	}
	if c.DialTotal == 0 {
		c.DialTotal = DefaultDialTotal
	}
	if c.Pipes == 0 {
		c.Pipes = DefaultPipes
	}
	if c.Look == 0 {
		c.Look = DefaultLook
	}
}

// Wait returns when no connection is open any more; when ctx is done first, with its error. All Listeners are stopped.
func (r *Relay) Wait(ctx context.Context) error {
	idle := make(chan struct{})
	go func() {
		r.running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close cuts off what is open and returns when it has ended. All Listeners are stopped.
func (r *Relay) Close() {
	r.die()
	r.cut(func(*conn) bool { return true })
	r.running.Wait()
	r.looking.Wait()
	r.pipes.close()
	r.spare.close()
}

// keepLooking ends connections that have been deserted.
func (r *Relay) keepLooking() {
	tick := time.NewTicker(r.config.Look)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.cut((*conn).deserted)
		case <-r.live.Done():
			return
		}
	}
}

// admit reserves a place for a connection of a Listener that has so many open, if there is one.
func (r *Relay) admit(open int64) bool {
	free := int64(r.config.Connections) - r.open.Add(1)
	if free >= 0 && open < share*(free+1) {
		return true
	}
	r.open.Add(-1)
	return false
}

func (r *Relay) leave() { r.open.Add(-1) }

// remember keeps c among those that can be cut off, until forget.
func (r *Relay) remember(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[c] = struct{}{}
}

func (r *Relay) forget(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// cut resets the connections that match, and returns how many those are.
func (r *Relay) cut(match func(*conn) bool) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		if match(c) {
			c.cut()
			n++
		}
	}
	return n
}
