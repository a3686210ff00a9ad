package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// pkg is what `go list -json` says of one package of this module.
type pkg struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	Deps         []string
}

// path is the package's path within the module: "internal/plan".
func (p pkg) path() string { return strings.TrimPrefix(p.ImportPath, "sluice/") }

// source is a parsed Go file.
type source struct {
	path string // within the repository
	test bool
	text string
	ast  *ast.File
	set  *token.FileSet
}

// lines is the number of lines from one position to another, both included.
func (s *source) lines(from, to token.Pos) int {
	return s.set.Position(to).Line - s.set.Position(from).Line + 1
}

// imports are the paths that the file imports.
func (s *source) imports() (paths []string) {
	for _, i := range s.ast.Imports {
		paths = append(paths, strings.Trim(i.Path.Value, `"`))
	}
	return paths
}

// root is the repository's folder, where the tests' own package is two levels down.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var listOnce = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,Deps", "./...")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(err, stderr(err))
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

func stderr(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return errors.New(string(exit.Stderr))
	}
	return nil
}

// packages lists the packages of this module.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listOnce()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if len(all) < 5 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

// sources parses every Go file of the module's packages.
func sources(t *testing.T) []*source {
	t.Helper()
	var all []*source
	for _, p := range packages(t) {
		for _, name := range append(append(p.GoFiles, p.TestGoFiles...), p.XTestGoFiles...) {
			all = append(all, parse(t, filepath.Join(p.Dir, name)))
		}
	}
	return all
}

func parse(t *testing.T, file string) *source {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root(t), file)
	if err != nil {
		t.Fatal(err)
	}
	return &source{path: rel, test: strings.HasSuffix(file, "_test.go"), text: string(text), ast: tree, set: set}
}

// tracked lists the files of the repository, save what a build leaves in bin.
func tracked(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root(t), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root(t), path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || rel == "bin"):
			return filepath.SkipDir
		case d.Type().IsRegular():
			files = append(files, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
