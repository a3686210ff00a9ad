package link

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernel stands for the socket: each of its subscriptions is the next that a test gave it.
type kernel struct {
	start time.Time
	tries []time.Duration // when it was subscribed to
	// next does what a subscription does with updates, and says why there is none.
	next func(try int, updates chan<- netlink.AddrUpdate, done <-chan struct{}) error
}

func (k *kernel) subscribe(updates chan<- netlink.AddrUpdate, done <-chan struct{}) error {
	k.tries = append(k.tries, time.Since(k.start))
	return k.next(len(k.tries)-1, updates, done)
}

// follow runs a watch over k for a time, and returns when changed was called.
func (k *kernel) follow(t *testing.T, d time.Duration) (told []time.Duration) {
	t.Helper()
	k.start = time.Now()
	w := watch{subscribe: k.subscribe, counts: func(int) bool { return true }, bell: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := w.run(ctx, func() { told = append(told, time.Since(k.start)) }); err != nil {
		t.Error(err)
	}
	return told
}

// lasting is a subscription that tells nothing until done.
func lasting(updates chan<- netlink.AddrUpdate, done <-chan struct{}) {
	go func() {
		<-done
		close(updates)
	}()
}

// A subscription that cannot be made anew is tried again, ever later, and each try counts as a change.
func TestSubscribesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{next: func(try int, updates chan<- netlink.AddrUpdate, done <-chan struct{}) error {
			switch {
			case try == 0:
				close(updates) // there were too many notifications
				return nil
			case try < 12:
				return unix.EMFILE
			}
			lasting(updates, done)
			return nil
		}}
		told := k.follow(t, time.Minute)
		const ms = time.Millisecond
		want := []time.Duration{0, 10 * ms, 30 * ms, 70 * ms, 150 * ms, 310 * ms, 630 * ms, 1270 * ms, 2550 * ms, 5110 * ms, 10110 * ms, 15110 * ms, 20110 * ms}
		if !slices.Equal(k.tries, want) {
			t.Errorf("subscribed at %v, want %v", k.tries, want)
		}
		if last := told[len(told)-1]; len(told) < 12 || last != 20120*ms {
			t.Errorf("told at %v, want the try that succeeded last", told)
		}
	})
}

// One that ends now and then is made anew at once.
func TestSubscribesAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{next: func(_ int, updates chan<- netlink.AddrUpdate, done <-chan struct{}) error {
			go func() {
				select {
				case <-time.After(10 * time.Second):
				case <-done:
				}
				close(updates)
			}()
			return nil
		}}
		k.follow(t, 35*time.Second)
		for i, at := range k.tries {
			if want := time.Duration(i) * (10*time.Second + firstWait); at != want {
				t.Errorf("subscribed at %v, want %v", at, want)
			}
		}
	})
}

// Changes that come together are told together, also while whoever is told takes his time.
func TestGathersChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{next: func(_ int, updates chan<- netlink.AddrUpdate, done <-chan struct{}) error {
			go func() {
				time.Sleep(time.Second)
				for range 1000 {
					updates <- netlink.AddrUpdate{}
				}
				lasting(updates, done)
			}()
			return nil
		}}
		if told := k.follow(t, time.Minute); !slices.Equal(told, []time.Duration{gatherTime, time.Second + gatherTime}) {
			t.Errorf("told at %v", told)
		}
	})
}

// Without a subscription at first, there is none to wait for.
func TestCannotSubscribe(t *testing.T) {
	w := watch{subscribe: func(chan<- netlink.AddrUpdate, <-chan struct{}) error { return unix.EMFILE }}
	if err := w.run(t.Context(), func() { t.Error("told") }); !errors.Is(err, unix.EMFILE) {
		t.Errorf("error %v", err)
	}
}
