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
	files, remarks, err := readFiles(paths, stdin)
	if err != nil {
		return nil, nil, err
	}
	a := assemble(files)
	snapshot := a.snapshot(podMemo{})
	return snapshot, append(remarks, a.sorted(files)...), nil
}

// ReadTemplates reads manifests as Read does, for the Pod templates of their workloads, sorted by kind and name.
func ReadTemplates(paths []string, stdin io.Reader) ([]convert.PodTemplate, []Problem, error) {
	files, remarks, err := readFiles(paths, stdin)
	if err != nil {
		return nil, nil, err
	}
	a := assemble(files)
	return a.templates(), append(remarks, a.sorted(files)...), nil
}

// readFiles reads all that the paths lead to. The remarks are about the paths themselves.
func readFiles(paths []string, stdin io.Reader) (files []*file, remarks []Problem, err error) {
	var undecoded []*document
	var errs []error
	for _, l := range list(paths) {
		errs = append(errs, l.err)
		if l.none {
			remarks = append(remarks, noManifests(l.path))
		}
		for _, f := range l.files {
			text, err := f.read(stdin)
			errs = append(errs, err)
			file := &file{path: f.name()}
			undecoded = append(undecoded, file.setText(text)...)
			files = append(files, file)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	decodeAll(undecoded)
	for _, f := range files {
		f.settle()
	}
	return files, remarks, nil
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
