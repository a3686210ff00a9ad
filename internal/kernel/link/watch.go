package link

import (
	"context"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
)

const (
	// gatherTime is how long changes of addresses are gathered before they are told: an interface comes with several,
	// and whoever is told reads all there are.
	gatherTime = 10 * time.Millisecond
	// firstWait and longestWait bound the wait before a subscription that ended is made anew. It is doubled while they end
	// sooner than the longest.
	firstWait   = 10 * time.Millisecond
	longestWait = 5 * time.Second
)

// WatchAddresses calls changed after changes of addresses in the namespace, one call for those within a few milliseconds,
// and once at first, until ctx ends; then it returns nil. It returns an error only when it cannot subscribe at first.
// Notifications that the kernel drops, because there are too many, count as a change, and so does each try to subscribe
// anew after that.
//
// Changes of the interface but do not count: it may have thousands of addresses that are nobody's business.
func (h *Handle) WatchAddresses(ctx context.Context, but string, changed func()) error {
	w := watch{subscribe: h.subscribe, counts: h.isNot(but), bell: make(chan struct{}, 1)}
	return w.run(ctx, changed)
}

// WatchAddressesOf is WatchAddresses of one interface alone, which may come and go.
func (h *Handle) WatchAddressesOf(ctx context.Context, name string, changed func()) error {
	w := watch{subscribe: h.subscribe, counts: h.is(name), bell: make(chan struct{}, 1)}
	return w.run(ctx, changed)
}

// is reports whether the index of an interface is that of the one of a name. It goes by what it has met where there is no
// interface any more, as when addresses go because their interface does.
func (h *Handle) is(name string) func(index int) bool {
	known := 0
	if l, err := h.nl.LinkByName(name); err == nil {
		known = l.Attrs().Index
	}
	return func(index int) bool {
		l, err := h.nl.LinkByIndex(index)
		if err != nil {
			return index == known
		}
		if l.Attrs().Name == name {
			known = index
		}
		return index == known
	}
}

// isNot reports of the index of an interface whether its name is another one. It asks the kernel until it has met that
// name.
func (h *Handle) isNot(name string) func(index int) bool {
	known := 0
	return func(index int) bool {
		if index == known {
			return false
		}
		l, err := h.nl.LinkByIndex(index)
		if err == nil && l.Attrs().Name == name {
			known = index
		}
		return index != known
	}
}

// subscribe has notifications of changed addresses sent to updates, which is closed when that ends: because done is
// closed, or because the socket failed.
func (h *Handle) subscribe(updates chan<- netlink.AddrUpdate, done <-chan struct{}) error {
	options := netlink.AddrSubscribeOptions{ErrorCallback: func(error) {}}
	if h.ns.IsOpen() {
		options.Namespace = &h.ns
	}
	return netlink.AddrSubscribeWithOptions(updates, done, options)
}

// watch takes notifications as they come, so that the kernel need not drop any, and tells of them in its own time.
type watch struct {
	subscribe func(updates chan<- netlink.AddrUpdate, done <-chan struct{}) error
	counts    func(index int) bool
	// bell has a ring in it while there is a change to tell of.
	bell chan struct{}
}

func (w *watch) run(ctx context.Context, changed func()) error {
	first, err := w.open(ctx)
	if err != nil {
		return fmt.Errorf("subscribe to address changes: %w", err)
	}
	w.ring() // what happened before the subscription
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		w.listen(ctx, first)
	}()
	for w.gather(ctx) {
		changed()
	}
	<-listened
	return nil
}

// gather waits for a change and for those that come with it. It reports whether ctx lasted so long.
func (w *watch) gather(ctx context.Context) bool {
	select {
	case <-w.bell:
	case <-ctx.Done():
		return false
	}
	if !sleep(ctx, gatherTime) {
		return false
	}
	select {
	case <-w.bell:
	default:
	}
	return true
}

// subscription is one socket's notifications.
type subscription struct {
	updates <-chan netlink.AddrUpdate
	end     func()
}

func (w *watch) open(ctx context.Context) (*subscription, error) {
	ctx, end := context.WithCancel(ctx)
	updates := make(chan netlink.AddrUpdate)
	if err := w.subscribe(updates, ctx.Done()); err != nil {
		end()
		return nil, err
	}
	return &subscription{updates, end}, nil
}

// listen rings for each notification until ctx ends, and subscribes again when a subscription has ended. What changed in
// between is unknown, so it rings for that, too; while there is no subscription this is all that tells.
func (w *watch) listen(ctx context.Context, s *subscription) {
	wait := firstWait
	for ctx.Err() == nil {
		since := time.Now()
		w.drain(s)
		if time.Since(since) > longestWait {
			wait = firstWait
		}
		if !sleep(ctx, wait) {
			return
		}
		wait = min(2*wait, longestWait)
		s, _ = w.open(ctx) // there are files enough some time
		w.ring()
	}
}

// drain rings for each notification of a subscription until it ends, and lets go of its socket.
func (w *watch) drain(s *subscription) {
	if s == nil {
		return
	}
	defer s.end()
	for u := range s.updates {
		if w.counts(u.LinkIndex) {
			w.ring()
		}
	}
}

func (w *watch) ring() {
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// sleep reports whether ctx lasted so long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
