package manifest

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"sluice/internal/filewatch"
)

// hangTries bounds how often folders that appear while others are hung on are looked for.
const hangTries = 8

// bell rings when something happens to the files of some paths. It hangs on folders, never on files: a file that is
// replaced takes what hangs on it away.
type bell struct {
	paths []string // absolute
	// notifier is nil where the kernel gives none; then only time rings.
	notifier *fsnotify.Watcher
	// hung are the folders it hangs on, as they were: another folder can take the name of one.
	hung map[string]fs.FileInfo
	// whole are those of them in which every file matters; ways are the paths that matter in the others.
	whole   map[string]bool
	ways    []string
	trouble map[string]error // by folder
}

// rings are what rang: paths without symbolic links, or all there are.
type rings struct {
	all   bool
	paths map[string]bool
}

func (r rings) has(f found) bool {
	return r.all || r.paths[f.real]
}

func newBell(paths []string) (*bell, error) {
	b := &bell{hung: map[string]fs.FileInfo{}, trouble: map[string]error{}}
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		b.paths = append(b.paths, path)
	}
	notifier, err := fsnotify.NewWatcher()
	if err != nil {
		b.trouble[strings.Join(paths, ", ")] = err
		return b, nil
	}
	b.notifier = notifier
	return b, nil
}

func (b *bell) close() {
	if b.notifier != nil {
		_ = b.notifier.Close() // nothing is written, so nothing is lost
	}
}

// hang hangs the bell on every folder that matters now, and reports whether that made or ended trouble. It looks
// again until nothing is new, since a folder may have been made between the look and the hanging.
func (b *bell) hang() (retold bool) {
	if b.notifier == nil {
		return false
	}
	before := maps.Clone(b.trouble)
	for range hangTries {
		if !b.hangOnce() {
			break
		}
	}
	return !maps.EqualFunc(before, b.trouble, func(x, y error) bool { return x.Error() == y.Error() })
}

func (b *bell) hangOnce() (more bool) {
	want := b.folders()
	listening := map[string]bool{}
	for _, dir := range b.notifier.WatchList() {
		listening[dir] = true
	}
	for dir := range listening {
		if was, ok := want[dir]; !ok || b.hung[dir] == nil || !os.SameFile(was, b.hung[dir]) {
			_ = b.notifier.Remove(dir) // it may have gone by itself
			delete(b.hung, dir)
			listening[dir] = false
		}
	}
	clear(b.trouble)
	for dir, info := range want {
		if listening[dir] {
			continue
		}
		switch err := b.notifier.Add(dir); {
		case err == nil:
			b.hung[dir], more = info, true
		case !errors.Is(err, fs.ErrNotExist):
			b.trouble[dir] = err
		}
	}
	return more
}

// folders are those in which something can happen to the paths, by their names without symbolic links: each path that
// is a folder, the folder that holds it or will, and the folders that symbolic links to files lead to.
func (b *bell) folders() map[string]fs.FileInfo {
	out := map[string]fs.FileInfo{}
	b.whole, b.ways = map[string]bool{}, nil
	for _, path := range b.paths {
		if f := find(path); f.err == nil && f.info.IsDir() {
			out[f.real], b.whole[f.real] = f.info, true
		}
		above := holder(path)
		if _, ok := out[above.real]; !ok && above.err == nil {
			out[above.real] = above.info
		}
		b.ways = append(b.ways, filepath.Join(above.real, strings.TrimPrefix(path, above.path)))
		for _, f := range links(path) {
			if in := find(filepath.Dir(f.real)); f.real != "" && in.err == nil {
				out[in.real] = in.info
				b.ways = append(b.ways, f.real)
			}
		}
	}
	return out
}

// links are the symbolic links to manifests in a folder, or the path itself if it is none.
func links(path string) []found {
	entries, err := os.ReadDir(path)
	if err != nil {
		return []found{find(path)}
	}
	var out []found
	for _, entry := range entries {
		if isManifest(entry.Name()) && entry.Type()&fs.ModeSymlink != 0 {
			out = append(out, find(filepath.Join(path, entry.Name())))
		}
	}
	return out
}

// holder is the lowest folder above a path that exists.
func holder(path string) found {
	for {
		path = filepath.Dir(path)
		if f := find(path); (f.err == nil && f.info.IsDir()) || path == filepath.Dir(path) {
			return f
		}
	}
}

// wait waits until something rings and is quiet again, or for the time of a poll.
func (b *bell) wait(ctx context.Context, poll time.Duration) rings {
	rung := rings{paths: map[string]bool{}}
	concerns := func(path string) bool {
		if b.concerns(path) {
			rung.paths[path] = true
			return true
		}
		return false
	}
	filewatch.Wait(ctx, b.notifier, poll, concerns, func() { rung.all = true })
	return rung
}

// concerns reports whether something that happened at a path can matter: in a folder that matters as a whole, or on
// the way to one of the paths.
func (b *bell) concerns(name string) bool {
	if b.whole[name] || b.whole[filepath.Dir(name)] {
		return true
	}
	return slices.ContainsFunc(b.ways, func(way string) bool {
		return way == name || strings.HasPrefix(way, name+"/")
	})
}

// trouble is a folder that the bell does not hang on, and why.
type trouble struct {
	dir string
	err error
}

func (b *bell) troubles() []trouble {
	var out []trouble
	for _, dir := range slices.Sorted(maps.Keys(b.trouble)) {
		out = append(out, trouble{dir, b.trouble[dir]})
	}
	return out
}
