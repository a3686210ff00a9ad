package manifest

import (
	"context"
	"errors"
	"slices"
	"time"

	"sluice/internal/filewatch"
	"sluice/internal/model"
	"sluice/internal/source/convert"
)

// Notify takes a Snapshot and the Problems of the manifests it was read from. Both are the receiver's to keep.
type Notify func(*model.Snapshot, []Problem)

// Watch reads manifests and calls notify, then again each time that they change, until ctx is done. A path is a file
// or a folder, and may appear, disappear or be replaced at any time. Objects go when their document goes, or their file
// from a folder; what cannot be read or is wrong, and what a path led to that is gone, stays as it last was, and a
// Problem says so. The error is for paths that cannot be watched at all.
func Watch(ctx context.Context, paths []string, notify Notify) error {
	w, err := newWatcher(paths)
	if err != nil {
		return err
	}
	defer w.bell.close()
	return w.run(ctx, notify)
}

// Check is the error of a path that cannot be read now, so that Watch would have nothing to begin with.
func Check(path string) error {
	l := listPath(path)
	if l.err != nil || l.info.IsDir() {
		return l.err
	}
	_, err := l.readRegular()
	return err
}

// watcher keeps the files of some paths.
type watcher struct {
	paths []string
	roots []root // one for each of paths
	bell  *bell
	files map[string]*watched // by path
	memo  podMemo
	// order is that of the last scan, and remarks are what it found out about paths.
	order   []*file
	remarks []Problem
	poll    time.Duration
}

func newWatcher(paths []string) (*watcher, error) {
	if slices.Contains(paths, Stdin) {
		return nil, errors.New("standard input can be read, but not watched")
	}
	bell, err := newBell(paths)
	if err != nil {
		return nil, err
	}
	return &watcher{
		paths: paths, roots: make([]root, len(paths)), bell: bell,
		files: map[string]*watched{}, memo: podMemo{}, poll: filewatch.PollTime,
	}, nil
}

func (w *watcher) run(ctx context.Context, notify Notify) error {
	rung := rings{all: true}
	for first := true; ; first = false {
		// Watching comes before reading: a change between the two is then read twice rather than missed.
		retold := w.bell.hang()
		if w.scan(rung) || retold || first {
			notify(w.snapshot())
		}
		rung = w.bell.wait(ctx, w.poll)
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (w *watcher) snapshot() (*model.Snapshot, []Problem) {
	a := assemble(w.order)
	s := a.snapshot(w.memo)
	problems := append(slices.Clone(w.remarks), a.sorted(w.order)...)
	for _, t := range w.bell.troubles() {
		problems = append(problems, Problem{
			File: t.dir, Severity: convert.Warning,
			Message: "changes are found only every " + w.poll.String() + ": " + t.err.Error(),
		})
	}
	return s, problems
}
