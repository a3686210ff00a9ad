package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// found is a file that a path leads to.
type found struct {
	path string
	real string      // the path without symbolic links; empty if err is set
	info fs.FileInfo // of the file itself, where the path is a symbolic link; nil if err is set
	err  error
}

func find(path string) found {
	f := found{path: path}
	if f.info, f.err = os.Stat(path); f.err != nil {
		return f
	}
	var err error
	if f.real, err = filepath.EvalSymlinks(path); err == nil {
		f.real, err = filepath.Abs(f.real)
	}
	if err != nil { // a pipe of another process has no path of its own
		f.real = path
	}
	return f
}

// listing is what one of the given paths leads to. If its err is set, that is not known.
type listing struct {
	found // the path itself
	files []found
	none  bool // it is a folder without manifests
}

// list is what the paths lead to: each path itself, or if it is a folder, the manifests in it (as kubectl does, not
// those in folders below), sorted by name. A file that is reached twice is listed once, where it is reached first.
func list(paths []string) []listing {
	var out []listing
	seen := map[string]bool{}
	for _, path := range paths {
		l := listPath(path)
		l.files = slices.DeleteFunc(l.files, func(f found) bool {
			again := f.real != "" && seen[f.real]
			seen[f.real] = true
			return again
		})
		out = append(out, l)
	}
	return out
}

func listPath(path string) listing {
	if path == Stdin {
		f := found{path: path, real: path}
		return listing{found: f, files: []found{f}}
	}
	f := find(path)
	switch {
	case f.err != nil:
		return listing{found: f}
	case f.info.IsDir():
		return listFolder(f)
	}
	return listing{found: f, files: []found{f}}
}

// listFolder makes sure that the folder is still there in the end: else its files seem to go one by one, as if
// somebody deleted them.
func listFolder(folder found) listing {
	entries, err := os.ReadDir(folder.path)
	files := manifestsOf(folder, entries)
	if err == nil {
		err = folder.stillThere()
	}
	if folder.err = err; err != nil {
		return listing{found: folder}
	}
	return listing{found: folder, files: files, none: len(files) == 0}
}

func manifestsOf(folder found, entries []fs.DirEntry) (out []found) {
	for _, entry := range entries {
		if !isManifest(entry.Name()) {
			continue
		}
		in := findIn(folder, entry)
		vanished := errors.Is(in.err, fs.ErrNotExist) && entry.Type()&fs.ModeSymlink == 0
		if vanished || (in.err == nil && in.info.IsDir()) {
			continue
		}
		out = append(out, in.ends())
	}
	return out
}

// stillThere is an error if the path no longer leads to what was found.
func (f found) stillThere() error {
	now, err := os.Stat(f.path)
	if err == nil && !os.SameFile(now, f.info) {
		err = fmt.Errorf("read %s: another one took its place meanwhile", f.path)
	}
	return err
}

// ends refuses a pipe or a device: who names it on the command line means it, but in a folder nobody may ever write to
// the one, and the other may have no end.
func (f found) ends() found {
	if f.err == nil && !f.info.Mode().IsRegular() {
		f.err = fmt.Errorf("read %s: not a regular file", f.path)
	}
	return f
}

// findIn is find for an entry of a folder, with one look at the file in place of many. The entry can be a symbolic
// link, as in a mounted ConfigMap.
func findIn(folder found, entry fs.DirEntry) found {
	path := filepath.Join(folder.path, entry.Name())
	if entry.Type()&fs.ModeSymlink != 0 {
		return find(path)
	}
	info, err := entry.Info()
	if err != nil {
		return found{path: path, err: err}
	}
	return found{path: path, real: filepath.Join(folder.real, entry.Name()), info: info}
}

// endings are those of the names of manifests in a folder.
var endings = []string{".yaml", ".yml", ".json"}

// isManifest reports whether a file in a folder is read, by its name. Hidden files are an editor's, or the inside of a
// mounted ConfigMap.
func isManifest(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains(endings, filepath.Ext(name))
}
