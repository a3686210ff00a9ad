package lab

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"sluice/internal/plan"
)

// Tally counts outcomes.
type Tally struct {
	Total int
	// Endpoints and Peers count forwarded connections by where they arrived and by the client's address seen there.
	Endpoints map[netip.AddrPort]int
	Peers     map[netip.Addr]int
	// Failed counts all others, by what happened instead.
	Failed map[plan.Action]int
	// Failures are the first few of them.
	Failures []Failure
}

// mostFailures is how many are told one by one.
const mostFailures = 5

// Failure is a connection that did not reach an endpoint.
type Failure struct {
	Dial    Dial
	Outcome Outcome
	Began   time.Time
	Took    time.Duration
}

// String is what is to be known to find the cause. The error has the client's port, but for TCP that was not connected.
func (f Failure) String() string {
	return fmt.Sprintf(
		"%s, after %s: to %s/%s: %s: %v",
		f.Began.Format("15:04:05.000000"), f.Took.Round(time.Microsecond), f.Dial.To, f.Dial.Protocol, f.Outcome, f.Outcome.Err,
	)
}

// Forwarded is the number of connections that reached an endpoint.
func (t Tally) Forwarded() int {
	n := 0
	for _, c := range t.Endpoints {
		n += c
	}
	return n
}

func newTally() Tally {
	return Tally{Endpoints: map[netip.AddrPort]int{}, Peers: map[netip.Addr]int{}, Failed: map[plan.Action]int{}}
}

// add counts what became of a connection that began at a time.
func (t *Tally) add(d Dial, o Outcome, began time.Time) {
	t.Total++
	if o.Action != plan.Forward {
		t.Failed[o.Action]++
		if len(t.Failures) < mostFailures {
			t.Failures = append(t.Failures, Failure{d, o, began, time.Since(began)})
		}
		return
	}
	t.Endpoints[o.Endpoint]++
	t.Peers[o.Peer.Addr()]++
}

// Spread opens n connections, one after the other.
func (h *Host) Spread(d Dial, n int) (Tally, error) {
	t := newTally()
	for range n {
		began := time.Now()
		o, err := h.Dial(d)
		if err != nil {
			return t, err
		}
		t.add(d, o, began)
	}
	return t, nil
}

// Load opens connections in the background until it is stopped.
type Load struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex // guards the following
	tally Tally
	err   error
}

// Load starts to open a connection each time pause has passed since the last one ended. Call Stop.
func (h *Host) Load(d Dial, pause time.Duration) *Load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Load{cancel: cancel, done: make(chan struct{}), tally: newTally()}
	go func() {
		defer close(l.done)
		for ctx.Err() == nil && l.dial(h, d) {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	return l
}

// dial opens one connection. It reports false if the lab itself failed.
func (l *Load) dial(h *Host, d Dial) bool {
	began := time.Now()
	o, err := h.Dial(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = err
		return false
	}
	l.tally.add(d, o, began)
	return true
}

// Tally is what happened since the start, or since the last Tally.
func (l *Load) Tally() (Tally, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tally
	l.tally = newTally()
	return t, l.err
}

// Stop ends the load and returns the rest.
func (l *Load) Stop() (Tally, error) {
	l.cancel()
	<-l.done
	return l.Tally()
}
