package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of `go test -json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Elapsed    float64
	Output     string
}

// id names a test; a package as a whole has no Test.
type id struct{ Package, Test string }

type result struct {
	action  string // pass, fail, skip
	elapsed float64
}

// summary collects events.
type summary struct {
	results map[id]result
	output  map[id][]string
	parents map[id]bool
	stray   []string // what go printed outside of any test
}

func newSummary() *summary {
	return &summary{results: map[id]result{}, output: map[id][]string{}, parents: map[id]bool{}}
}

func (s *summary) read(r io.Reader) error { return decode(r, s.add) }

func (s *summary) add(e event) {
	key := id{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		if e.Package == "" {
			s.stray = append(s.stray, e.Output)
			return
		}
		s.output[key] = append(s.output[key], e.Output)
	case "pass", "fail", "skip":
		s.results[key] = result{e.Action, e.Elapsed}
	case "run":
		if at := strings.LastIndexByte(e.Test, '/'); at >= 0 {
			s.parents[id{e.Package, e.Test[:at]}] = true
		}
	}
}

// counts counts leaves, and failures that no leaf explains.
func (s *summary) counts() (c counts) {
	for key, r := range s.results {
		switch {
		case r.action == "fail":
			if !s.failedBelow(key) {
				c.Failed++
			}
		case key.Test == "" || s.parents[key]:
		case r.action == "pass":
			c.Passed++
		case r.action == "skip":
			c.Skipped++
		}
	}
	if len(s.results) == 0 {
		c.Failed++ // nothing ran
	}
	return c
}

// failedBelow reports whether a part of key failed: a subtest, or a test of the package.
func (s *summary) failedBelow(key id) bool {
	for k, r := range s.results {
		if r.action != "fail" || k == key || k.Package != key.Package {
			continue
		}
		if key.Test == "" || strings.HasPrefix(k.Test, key.Test+"/") {
			return true
		}
	}
	return false
}

// print writes a line per package, then failures in full, then skips.
func (s *summary) print(w io.Writer) {
	keys := slices.SortedFunc(maps.Keys(s.results), func(a, b id) int {
		return strings.Compare(a.Package+"\x00"+a.Test, b.Package+"\x00"+b.Test)
	})
	for _, k := range keys {
		if r := s.results[k]; k.Test == "" && r.action != "skip" {
			fmt.Fprintf(w, "%-5s %s (%.1fs)\n", r.action, k.Package, r.elapsed)
		}
	}
	failed := false
	for _, k := range keys {
		if s.results[k].action == "fail" {
			failed = true
			fmt.Fprintf(w, "--- failed: %s %s\n%s", k.Package, k.Test, strings.Join(s.output[k], ""))
		}
	}
	if failed || len(keys) == 0 {
		fmt.Fprint(w, strings.Join(s.stray, ""))
	}
	for _, k := range keys {
		if s.results[k].action == "skip" && k.Test != "" {
			fmt.Fprintf(w, "--- skipped: %s %s: %s\n", k.Package, k.Test, reason(s.output[k]))
		}
	}
}

// reason is what a skipped test said.
func reason(output []string) string {
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return "no reason given"
}

func eachLine(r io.Reader, f func([]byte)) error {
	for br := bufio.NewReader(r); ; {
		line, err := br.ReadBytes('\n')
		if len(line) > 0 {
			f(bytes.TrimRight(line, "\n"))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
