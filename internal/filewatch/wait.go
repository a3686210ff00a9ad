package filewatch

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is how long nothing may happen before a change is told: a program that writes a file does so in several
	// steps, and what is there in between is not meant.
	settleTime = 40 * time.Millisecond
	// settleLimit is how long something that never settles can put that off.
	settleLimit = 500 * time.Millisecond
	// PollTime is how often files are looked at without being told. Network file systems tell nothing.
	PollTime = 10 * time.Second
)

// Wait waits until something that concerns the caller happens and is over, which it reports, or for the time of a poll.
// It calls lost when the notifier missed something, which may have been of concern. Without a notifier only time tells.
func Wait(ctx context.Context, notifier *fsnotify.Watcher, poll time.Duration, concerns func(path string) bool, lost func()) (rung bool) {
	var events chan fsnotify.Event
	var errs chan error
	if notifier != nil {
		events, errs = notifier.Events, notifier.Errors
	}
	done, quiet := time.After(poll), (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return rung
		case <-done:
			return rung
		case <-quiet:
			return rung
		case e := <-events:
			if !concerns(e.Name) {
				continue
			}
		case <-errs: //nolint:errcheck // whichever it was, events were lost
			lost()
		}
		if !rung {
			rung, done = true, time.After(settleLimit)
		}
		quiet = time.After(settleTime)
	}
}
