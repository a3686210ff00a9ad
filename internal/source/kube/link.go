package kube

import (
	"log/slog"
	"sync"
	"time"
)

// link keeps how things stand with the API server, kind by kind. It says once that the server is lost, and once that
// it is back, however often and for however many kinds that is noticed.
type link struct {
	log  *slog.Logger
	host string

	mu        sync.Mutex // guards all that follows, and the kinds
	kinds     []*kindLink
	ready     bool
	connected bool
	since     time.Time
	lostSince time.Time // zero: not lost
	// wake is closed when a kind for which the server was lost, or that it refused, is being watched again, so that the
	// others need not wait until it is their turn to try.
	wake chan struct{}
}

// kindLink is how things stand with one kind.
type kindLink struct {
	*link
	KindState
	fault    fault
	optional bool
}

func newLink(log *slog.Logger, host string) *link {
	l := &link{log: log, host: host, since: time.Now(), wake: make(chan struct{})}
	for _, k := range kinds("") {
		l.kinds = append(l.kinds, &kindLink{link: l, optional: k.optional, KindState: KindState{Kind: k.name, Since: l.since}})
	}
	return l
}

func (l *link) of(kind string) *kindLink {
	for _, k := range l.kinds {
		if k.Kind == kind {
			return k
		}
	}
	return nil
}

func (l *link) state() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{Synced: l.ready, Connected: l.connected, Since: l.since}
	for _, k := range l.kinds {
		s.Kinds = append(s.Kinds, k.KindState)
		if !k.Connected && k.Error != "" && (s.Error == "" || !k.optional) {
			s.Error = k.Error
		}
	}
	return s
}

// told is that the first Change is under way.
func (l *link) told() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = true
}

// holds is how many objects there are.
func (k *kindLink) holds(n int, synced bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Objects, k.Synced = n, synced
}

// watching is that the server began to send changes.
func (k *kindLink) watching() {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.fault
	k.fault = none
	k.connect(true)
	if was == refused {
		k.log.Info("the API server no longer refuses a kind of objects", "kind", k.Kind)
	}
	if was != none { // what ended for this kind most often has for the others
		close(k.wake)
		k.wake = make(chan struct{})
	}
	k.found()
}

// failed is that the server could not be asked, or gave an error in place of an answer.
func (k *kindLink) failed(err error) {
	f := faultOf(err)
	if f == none {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	was, before := k.fault, k.Error
	k.fault, k.Error = f, wordsOf(err)
	k.connect(false)
	switch {
	case f == lost && k.lostSince.IsZero():
		k.lostSince = time.Now()
		k.log.Warn("the API server is lost; all goes on as it was", "host", k.host, "error", k.Error)
	case f == refused && (was != refused || before != k.Error):
		k.log.Warn("the API server refuses a kind of objects; it is asked again", "kind", k.Kind, "error", k.Error)
	}
	k.found()
}

// ended is that no changes come any more, until the next watching.
func (k *kindLink) ended() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Connected {
		k.Error = "the watch ended"
	}
	k.connect(false)
}

// waker is closed when the server is found again.
func (l *link) waker() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wake
}

// found says that the server is back, if it was lost and is so for no kind any more.
func (l *link) found() {
	if l.lostSince.IsZero() {
		return
	}
	for _, k := range l.kinds {
		if k.fault == lost {
			return
		}
	}
	l.log.Info("the API server is back", "host", l.host, "after", time.Since(l.lostSince).Round(time.Millisecond))
	l.lostSince = time.Time{}
}

func (k *kindLink) connect(is bool) {
	now := time.Now()
	if k.Connected != is {
		k.Connected, k.Since = is, now
	}
	all := true
	for _, k := range k.kinds {
		all = all && (k.Connected || (k.optional && k.fault == refused))
	}
	if k.connected != all {
		k.connected, k.since = all, now
	}
}
