package filewatch

import (
	"context"
	"io/fs"
	"maps"
	"os"
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
	// folders are those listened to; nil is one that cannot be, and is polled.
	folders map[string]fs.FileInfo
}

// hang listens to the folders on the way as it is now. After something happened it begins from nothing, since a folder
// may have gone and another come under its name.
func (w *watcher) hang(happened bool) {
	if !happened && w.hangs() {
		return
	}
	for range hangTries {
		w.unhang()
		w.ways, w.folders = ways(w.path), map[string]fs.FileInfo{}
		notifier, err := w.listen()
		if err != nil {
			return
		}
		w.notifier = notifier
		for way := range w.ways {
			w.add(filepath.Dir(way))
		}
		if maps.Equal(w.ways, ways(w.path)) {
			return
		}
	}
}

func (w *watcher) add(folder string) {
	if _, is := w.folders[folder]; is {
		return
	}
	w.folders[folder] = nil
	if w.notifier.Add(folder) != nil {
		return
	}
	if info, err := os.Stat(folder); err == nil {
		w.folders[folder] = info
	}
}

// hangs reports whether it listens to all folders on the way as it is now. What the kernel tells of is no matter here:
// a folder that went and came tells, even if it looks the same.
func (w *watcher) hangs() bool {
	for folder, info := range w.folders {
		now, err := os.Stat(folder)
		if info == nil || err != nil || !os.SameFile(info, now) {
			return false
		}
	}
	return w.notifier != nil && maps.Equal(w.ways, ways(w.path))
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
