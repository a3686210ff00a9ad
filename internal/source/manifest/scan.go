package manifest

import (
	"io/fs"
	"os"
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
	l := look{rung: rung, before: w.files, files: make(map[string]*watched, len(w.files))}
	for i, at := range list(w.paths) {
		l.path(&w.roots[i], at)
	}
	decodeAll(l.undecoded)
	for _, f := range l.changed {
		f.settle()
	}
	same := len(l.changed) == 0 && slices.Equal(l.order, w.order) && slices.Equal(l.remarks, w.remarks)
	w.files, w.order, w.remarks = l.files, l.order, l.remarks
	return !same
}

// look is one look at all files.
type look struct {
	rung          rings
	before, files map[string]*watched // by path
	order         []*file
	remarks       []Problem
	changed       []*file
	undecoded     []*document
}

// path looks at what one of the given paths leads to. The files that it led to before stay as they were if it keeps
// them.
func (l *look) path(r *root, at listing) {
	if r.keeps(at) {
		r.lost = true
		for _, path := range r.files {
			l.keep(path)
		}
		l.remarks = append(l.remarks, l.lost(*r, at))
		return
	}
	*r = root{info: at.info}
	if at.none {
		l.remarks = append(l.remarks, noManifests(at.path))
	}
	for _, f := range at.files {
		r.files = append(r.files, f.path)
		l.file(f)
	}
}

func (l *look) keep(path string) {
	if l.files[path] == nil {
		l.files[path] = l.before[path]
		l.order = append(l.order, &l.files[path].file)
	}
}

func (l *look) file(f found) {
	if l.files[f.path] == nil && l.before[f.path] == nil {
		w := &watched{file: file{path: f.path}}
		l.files[f.path], l.order, l.changed = w, append(l.order, &w.file), append(l.changed, &w.file)
	}
	l.keep(f.path)
	w := l.files[f.path]
	if !l.rung.has(f) && w.looksAs(f) {
		return
	}
	docs, different := w.refresh(f)
	if l.undecoded = append(l.undecoded, docs...); different {
		l.changed = append(l.changed, &w.file)
	}
}

func (w *watched) looksAs(f found) bool {
	return f.err == nil && w.info != nil && os.SameFile(w.info, f.info) &&
		w.info.Size() == f.info.Size() && w.info.ModTime().Equal(f.info.ModTime())
}

// refresh reads the file again. One that cannot be read says what it said.
func (w *watched) refresh(f found) (undecoded []*document, different bool) {
	was := w.unreadable
	text, err := f.readRegular()
	w.info, w.unreadable = nil, err
	if err != nil {
		return nil, was == nil || was.Error() != err.Error()
	}
	if time.Since(f.info.ModTime()) > restless {
		w.info = f.info
	}
	if was == nil && sumOf(text) == w.sum {
		return nil, false
	}
	return w.setText(text), true
}

// readRegular reads a file that is sure to end, and to be there a second time.
func (f found) readRegular() ([]byte, error) { return f.ends().read(nil) }
