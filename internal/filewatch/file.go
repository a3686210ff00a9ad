package filewatch

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// File calls changed, one call at a time, at once and after each change of the file at path, until ctx is done. The
// error is that the path is no path; a file that is not there is waited for.
func File(ctx context.Context, path string, changed func()) error {
	full, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	w := watcher{path: full, poll: PollTime, listen: fsnotify.NewWatcher}
	w.run(ctx, changed)
	return nil
}

// run looks after it listens: a change between the two is then told twice rather than missed.
func (w *watcher) run(ctx context.Context, changed func()) {
	defer w.unhang()
	var last sight
	for rung := true; ctx.Err() == nil; rung = w.wait(ctx) {
		w.hang(rung)
		if now := look(w.path); rung || !now.same(last) {
			last = now
			changed()
		}
	}
}

// sight is what one look at a file shows without reading it; the zero sight, that there is none.
type sight struct{ info fs.FileInfo }

func look(path string) sight {
	info, err := os.Stat(path)
	if err != nil {
		return sight{}
	}
	return sight{info}
}

func (s sight) same(o sight) bool {
	if s.info == nil || o.info == nil {
		return s.info == nil && o.info == nil
	}
	return os.SameFile(s.info, o.info) && s.info.Size() == o.info.Size() && s.info.ModTime().Equal(o.info.ModTime())
}
