package main

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// file is a file of an image, or a symbolic link.
type file struct {
	mode    fs.FileMode // permissions alone
	link    string      // what a symbolic link leads to; empty: this is a file
	content []byte
}

// tree is the files of a layer by their path, without a leading slash. Folders come of themselves.
type tree map[string]file

// layer packs the tree. Owner, order and time do not depend on who builds it, and when.
func (t tree) layer(at time.Time) (v1.Layer, error) {
	packed, err := t.pack(at)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

func (t tree) pack(at time.Time) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	made := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		for _, dir := range missing(path.Dir(name), made) {
			header := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: at}
			if err := w.WriteHeader(header); err != nil {
				return nil, err
			}
		}
		if err := t[name].write(w, name, at); err != nil {
			return nil, err
		}
	}
	err := w.Close() // before the bytes are read, since it writes the end
	return buf.Bytes(), err
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

func (f file) write(w *tar.Writer, name string, at time.Time) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: at}
	if f.link != "" {
		header = &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: f.link, Mode: 0o777, ModTime: at}
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(f.content)
	return err
}
