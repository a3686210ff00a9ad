package main

import (
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// file is a file of the guest, or a symbolic link.
type file struct {
	from    string // the file of this machine that it is a copy of; empty: content
	link    string // what a symbolic link leads to; empty: this is a file
	mode    fs.FileMode
	content []byte
}

// tree is files by their path in the guest, without a leading slash. Folders come of themselves.
type tree map[string]file

// write packs the tree.
func (t tree) write(to io.Writer) error {
	a := newArchive(to)
	made := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		for _, dir := range missing(path.Dir(name), made) {
			if err := a.folder(dir); err != nil {
				return err
			}
		}
		if err := t[name].write(a, name); err != nil {
			return err
		}
	}
	return a.close()
}

// missing are the folders on the way to dir that are not made yet, the outermost first.
func missing(dir string, made map[string]bool) (dirs []string) {
	for ; !made[dir]; dir = path.Dir(dir) {
		made[dir] = true
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

func (f file) write(a *archive, name string) error {
	switch {
	case f.link != "":
		return a.link(name, f.link)
	case f.from != "":
		return a.copy(name, f.from)
	}
	return a.file(name, f.mode, f.content)
}

// addFolder adds the files below dir that are wanted.
func (t tree) addFolder(dir string, wanted func(name string) bool) error {
	return filepath.WalkDir(dir, func(from string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, from)
		name := merged(rel)
		if err != nil || !wanted(name) {
			return err
		}
		if d.Type() != fs.ModeSymlink {
			t[name] = file{from: from}
			return nil
		}
		to, err := os.Readlink(from)
		t[name] = file{link: to}
		return err
	})
}

// merged is where a file is on a machine whose /bin, /lib and /sbin lead to those of /usr. Packages have files in both.
func merged(name string) string {
	if top, _, ok := strings.Cut(name, "/"); ok && isMerged(top) {
		return "usr/" + name
	}
	return name
}

func isMerged(top string) bool { return top == "bin" || top == "sbin" || strings.HasPrefix(top, "lib") }
