package lab

import (
	"context"
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

func (t *Tally) add(o Outcome) {
	t.Total++
	if o.Action != plan.Forward {
		t.Failed[o.Action]++
		return
	}
	t.Endpoints[o.Endpoint]++
	t.Peers[o.Peer.Addr()]++
}

// Spread opens n connections, one after the other.
func (h *Host) Spread(d Dial, n int) (Tally, error) {
	t := newTally()
	for range n {
		o, err := h.Dial(d)
		if err != nil {
			return t, err
		}
		t.add(o)
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
		for ctx.Err() == nil && l.record(h.Dial(d)) {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	return l
}

func (l *Load) record(o Outcome, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = err
		return false
	}
	l.tally.add(o)
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
