package filewatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
)

// patience bounds a test that would wait for ever.
const patience = time.Minute

// content is what a path has; nothing, where there is no file.
func content(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

// follow runs f and returns what waits until the file has been read as want after a call.
func follow(t *testing.T, path string, f func(context.Context, func())) (wait func(want string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, done := make(chan string), make(chan struct{})
	go func() {
		defer close(done)
		f(ctx, func() {
			select {
			case read <- content(path):
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		goleak.VerifyNone(t)
	})
	return func(want string) {
		t.Helper()
		limit := time.After(patience)
		for last := ""; ; {
			select {
			case last = <-read:
				if last == want {
					return
				}
			case <-limit:
				t.Fatalf("the last call read %q, want %q", last, want)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// unpolled never looks without being told.
func unpolled(path string) func(context.Context, func()) {
	return func(ctx context.Context, changed func()) {
		w := watcher{path: path, poll: patience, listen: fsnotify.NewWatcher}
		w.run(ctx, changed)
	}
}

// A change of any kind is told by the kernel.
func TestEveryWayToChange(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "made", "later", "file")
	wait := follow(t, path, unpolled(path))
	wait("")
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	write(t, path, "made")
	wait("made")
	write(t, path, "written in place")
	wait("written in place")
	write(t, path+".new", "moved over")
	must(t, os.Rename(path+".new", path))
	wait("moved over")
	must(t, os.Remove(path))
	wait("")
	write(t, path, "made anew")
	wait("made anew")
	must(t, os.Rename(filepath.Join(dir, "made"), filepath.Join(dir, "away")))
	wait("")
	must(t, os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, "made")))
	wait("made anew")
	write(t, path, "after the folder came back")
	wait("after the folder came back")
}

// A mounted ConfigMap is a link to a file in a folder behind another link, which turns.
func TestConfigMap(t *testing.T) {
	dir := t.TempDir()
	mount := func(version, text string) {
		must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		write(t, filepath.Join(dir, version, "config.conf"), text)
		must(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	mount("..1", "first")
	path := filepath.Join(dir, "config.conf")
	must(t, os.Symlink("..data/config.conf", path))
	wait := follow(t, path, unpolled(path))
	wait("first")
	mount("..2", "second")
	must(t, os.RemoveAll(filepath.Join(dir, "..1")))
	wait("second")
	mount("..3", "third")
	wait("third")
}

// Links that lead to each other end.
func TestLinksInACircle(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	must(t, os.Symlink("b", path))
	must(t, os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	wait := follow(t, path, unpolled(path))
	wait("")
	must(t, os.Remove(filepath.Join(dir, "b")))
	write(t, filepath.Join(dir, "b"), "straight")
	wait("straight")
}

// Where the kernel tells nothing, looking does.
func TestPoll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	deaf := func() (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") }
	wait := follow(t, path, func(ctx context.Context, changed func()) {
		w := watcher{path: path, poll: time.Millisecond, listen: deaf}
		w.run(ctx, changed)
	})
	wait("")
	write(t, path, "seen")
	wait("seen")
	write(t, path, "longer than before")
	wait("longer than before")
}

// A poll that finds nothing changed leaves the notifier as it is, and one that finds another way listens to that.
func TestPollKeepsTheNotifier(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
	notifiers := 0
	w := watcher{path: filepath.Join(dir, "a", "file"), listen: func() (*fsnotify.Watcher, error) {
		notifiers++
		return fsnotify.NewWatcher()
	}}
	t.Cleanup(func() {
		w.unhang()
		goleak.VerifyNone(t)
	})
	hang := func(happened bool, want int) {
		t.Helper()
		if w.hang(happened); notifiers != want {
			t.Errorf("%d notifiers were made by now, want %d", notifiers, want)
		}
	}
	write(t, w.path, "first")
	hang(true, 1)
	write(t, w.path, "second")
	hang(false, 1)
	must(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	must(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
	write(t, w.path, "third")
	hang(false, 2)
	must(t, os.Remove(w.path))
	must(t, os.Symlink("other", w.path))
	hang(false, 3)
	hang(false, 3)
	hang(true, 4)
}

// The path may be relative, and the first call comes at once.
func TestRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "file", "here")
	wait := follow(t, "file", func(ctx context.Context, changed func()) {
		if err := File(ctx, "file", changed); err != nil {
			t.Error(err)
		}
	})
	wait("here")
	write(t, "file", "changed")
	wait("changed")
}
