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

// list is the files that the paths lead to: each path itself, or if it is a folder, the manifests in it (as kubectl
// does, not those in folders below), sorted by name. A file that is reached twice is listed once, where it is reached
// first.
func list(paths []string) []found {
	var out []found
	seen := map[string]bool{}
	for _, path := range paths {
		for _, f := range listPath(path) {
			if f.real != "" && seen[f.real] {
				continue
			}
			seen[f.real] = true
			out = append(out, f)
		}
	}
	return out
}

func listPath(path string) []found {
	if path == Stdin {
		return []found{{path: path, real: path}}
	}
	f := find(path)
	if f.err != nil || !f.info.IsDir() {
		return []found{f}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return []found{{path: path, err: err}}
	}
	var out []found
	for _, entry := range entries {
		if !isManifest(entry.Name()) {
			continue
		}
		in := findIn(f, entry)
		vanished := errors.Is(in.err, fs.ErrNotExist) && entry.Type()&fs.ModeSymlink == 0
		if vanished || (in.err == nil && in.info.IsDir()) {
			continue
		}
		out = append(out, in.ends())
	}
	return out
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

// isManifest reports whether a file in a folder is read, by its name. Hidden files are an editor's, or the inside of a
// mounted ConfigMap.
func isManifest(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}
