package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// restless is how old a file must be when it is read for its size and time to tell whether it changed since: clocks
// of file systems are coarse, and two writes can share one time.
const restless = 2 * time.Second

// watched is a file and how it looked when it was read.
type watched struct {
	file
	info fs.FileInfo // nil: not read, or too soon after a write
}

// scan brings the files up to date, and reports whether anything is different. It reads the files that rang and those
// that look different.
func (w *watcher) scan(rung rings) bool {
	files := make(map[string]*watched, len(w.files))
	var order, changed []*file
	var undecoded []*document
	for _, f := range list(w.paths) {
		known := w.files[f.path]
		if known == nil {
			known = &watched{file: file{path: f.path}}
			changed = append(changed, &known.file)
		}
		files[f.path], order = known, append(order, &known.file)
		if f.err != nil && !errors.Is(f.err, fs.ErrNotExist) {
			order = append(order, w.keepBelow(f.path, files)...)
		}
		if !rung.has(f) && known.looksAs(f) {
			continue
		}
		docs, different := known.refresh(f)
		if undecoded = append(undecoded, docs...); different {
			changed = append(changed, &known.file)
		}
	}
	decodeAll(undecoded)
	for _, f := range changed {
		f.settle()
	}
	same := len(changed) == 0 && slices.Equal(order, w.order)
	w.files, w.order = files, order
	return !same
}

// keepBelow keeps the files of a folder that cannot be read any more. They are as they were when it could.
func (w *watcher) keepBelow(folder string, files map[string]*watched) (kept []*file) {
	for _, f := range w.order {
		if f.path != folder && filepath.Dir(f.path) == filepath.Clean(folder) && files[f.path] == nil {
			files[f.path], kept = w.files[f.path], append(kept, f)
		}
	}
	return kept
}

func (w *watched) looksAs(f found) bool {
	return f.err == nil && w.info != nil && os.SameFile(w.info, f.info) &&
		w.info.Size() == f.info.Size() && w.info.ModTime().Equal(f.info.ModTime())
}

// refresh reads the file again. A file that is not there says nothing; one that cannot be read says what it said.
func (w *watched) refresh(f found) (undecoded []*document, different bool) {
	was := w.unreadable
	text, err := f.readRegular()
	w.info, w.unreadable = nil, err
	if err == nil && time.Since(f.info.ModTime()) > restless {
		w.info = f.info
	}
	if errors.Is(err, fs.ErrNotExist) {
		w.good, w.kept = nil, nil
		return w.setText(nil), was == nil || was.Error() != err.Error()
	}
	if err != nil {
		return nil, was == nil || was.Error() != err.Error()
	}
	if was == nil && sumOf(text) == w.sum {
		return nil, false
	}
	return w.setText(text), true
}

// readRegular reads a file that is sure to end, and to be there a second time.
func (f found) readRegular() ([]byte, error) { return f.ends().read(nil) }
