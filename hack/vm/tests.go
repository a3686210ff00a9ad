package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sluice/hack/vm/guest"
)

// suite is the tests of a package, with the arguments that its program gets.
type suite struct {
	pkg  string // import path
	dir  string // within the repository
	args []string
}

// findSuites lists the packages with tests that a part of the command line names, with the flags after them.
func findSuites(ctx context.Context, root string, words []string) (suites []suite, err error) {
	flags := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
	if flags < 0 {
		flags = len(words)
	}
	list := append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, inRepository(words[:flags])...)
	out, err := command(ctx, root, nil, "go", list...)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return suites, nil
		} else if err != nil {
			return nil, err
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			suites = append(suites, suite{p.ImportPath, dir, testFlags(words[flags:])})
		}
	}
}

// inRepository takes a folder without "./" too.
func inRepository(packages []string) []string {
	packages = slices.Clone(packages)
	for i, p := range packages {
		if !strings.HasPrefix(p, ".") && !strings.HasPrefix(p, "sluice") {
			packages[i] = "./" + p
		}
	}
	return packages
}

// testFlags are what go test makes of its flags: its own have a prefix for the program. The time limit is go test's.
func testFlags(words []string) []string {
	flags := []string{"-test.timeout=10m"}
	for _, w := range words {
		name := strings.TrimLeft(w, "-")
		name, _, _ = strings.Cut(name, "=")
		if strings.HasPrefix(w, "-") && slices.Contains(goTestFlags, name) {
			w = "-test." + strings.TrimLeft(w, "-")
		}
		flags = append(flags, w)
	}
	return flags
}

var goTestFlags = []string{"bench", "benchmem", "benchtime", "count", "cpu", "failfast", "fullpath", "list", "parallel", "run", "short", "shuffle", "skip", "timeout", "v"}

// repository is where the guest has the parts of the repository that tests read.
const repository = "sluice"

// add compiles the tests into a folder of this machine and adds them to what the guest gets.
func (s suite) add(ctx context.Context, root, program string, t tree) error {
	_, err := command(ctx, root, []string{"CGO_ENABLED=0"}, "go", "test", "-c", "-ldflags=-s -w", "-o", program, s.pkg)
	if err != nil {
		return err
	}
	t[s.program()] = file{from: program}
	return nil
}

// program is where the guest has the tests: in their folder, so that it exists.
func (s suite) program() string {
	return path.Join(repository, s.dir, path.Base(s.pkg)+".test")
}

func (s suite) run(verbose string) guest.Run {
	return guest.Run{
		Dir:  path.Join("/", repository, s.dir),
		Args: append([]string{path.Join("/", s.program()), "-test.v=" + verbose}, s.args...),
	}
}

// addData adds what tests read: those files that are in git, or will be.
func addData(ctx context.Context, root string, t tree) error {
	out, err := command(ctx, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		if isData(name) {
			t[path.Join(repository, name)] = file{from: filepath.Join(root, name)}
		}
	}
	return nil
}

func isData(name string) bool {
	return strings.Contains(name, "/testdata/") || path.Base(name) == "README.md" ||
		strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "docs/")
}

// addInit adds the guest's first program, and what it is to do.
func addInit(ctx context.Context, root, program string, t tree, config guest.Config) error {
	_, err := command(ctx, root, []string{"CGO_ENABLED=0"}, "go", "build", "-ldflags=-s -w", "-o", program, "./hack/vm/init")
	if err != nil {
		return err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("write the guest's config: %w", err)
	}
	t["init"] = file{from: program}
	t[strings.TrimPrefix(guest.ConfigFile, "/")] = file{mode: 0o644, content: text}
	return nil
}
