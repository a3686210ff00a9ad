package filewatch

import (
	"context"
	"maps"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// hangTries bounds how often the way to the file is gone again because it turned meanwhile.
const hangTries = 8

// watcher listens for what happens on the way to a file.
type watcher struct {
	path string // absolute
	poll time.Duration
	// listen makes a notifier.
	listen func() (*fsnotify.Watcher, error)
	// notifier is nil where the kernel gives none; then only time tells.
	notifier *fsnotify.Watcher
	ways     map[string]bool
}

// hang listens to the folders on the way as it is now. It begins from nothing each time, since a folder may have gone
// and another come under its name; the way changes seldom.
func (w *watcher) hang() {
	for range hangTries {
		w.unhang()
		w.ways = ways(w.path)
		notifier, err := w.listen()
		if err != nil {
			return
		}
		w.notifier = notifier
		for way := range w.ways {
			_ = notifier.Add(filepath.Dir(way)) // one that cannot be listened to is polled
		}
		if maps.Equal(w.ways, ways(w.path)) {
			return
		}
	}
}

func (w *watcher) unhang() {
	if w.notifier != nil {
		_ = w.notifier.Close() // nothing is written, so nothing is lost
		w.notifier = nil
	}
}

// wait waits until something happens on the way and is over, which it reports, or for the time of a poll.
func (w *watcher) wait(ctx context.Context) (rung bool) {
	return Wait(ctx, w.notifier, w.poll, func(path string) bool { return w.ways[path] }, func() {})
}
