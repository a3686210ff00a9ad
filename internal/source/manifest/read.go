package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sluice/internal/model"
	"sluice/internal/source/convert"
)

var errNoStdin = errors.New("standard input cannot be read here")

// Read reads manifests once. A path is a file, a folder, or "-" for stdin, which may be nil if no path is "-". What is
// wrong in the text is among the Problems and the rest is in the Snapshot; the error is for a path that cannot be
// read, and then there is no Snapshot.
func Read(paths []string, stdin io.Reader) (*model.Snapshot, []Problem, error) {
	files, err := readFiles(paths, stdin)
	if err != nil {
		return nil, nil, err
	}
	a := assemble(files)
	snapshot := a.snapshot(podMemo{})
	return snapshot, a.sorted(files), nil
}

// ReadTemplates reads manifests as Read does, for the Pod templates of their workloads, sorted by kind and name.
func ReadTemplates(paths []string, stdin io.Reader) ([]convert.PodTemplate, []Problem, error) {
	files, err := readFiles(paths, stdin)
	if err != nil {
		return nil, nil, err
	}
	a := assemble(files)
	return a.templates(), a.sorted(files), nil
}

func readFiles(paths []string, stdin io.Reader) ([]*file, error) {
	var files []*file
	var undecoded []*document
	var errs []error
	for _, f := range list(paths) {
		text, err := f.read(stdin)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		file := &file{path: f.name()}
		undecoded = append(undecoded, file.setText(text)...)
		files = append(files, file)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	decodeAll(undecoded)
	for _, f := range files {
		f.settle()
	}
	return files, nil
}

func (f found) read(stdin io.Reader) ([]byte, error) {
	switch {
	case f.err != nil:
		return nil, f.err
	case f.path != Stdin:
		return os.ReadFile(f.path)
	case stdin == nil:
		return nil, errNoStdin
	}
	text, err := io.ReadAll(stdin)
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return text, nil
}

func (f found) name() string {
	if f.path == Stdin {
		return "standard input"
	}
	return f.path
}
