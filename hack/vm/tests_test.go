package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFindSuites(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := findSuites(context.Background(), root, []string{"hack/vm/...", "./hack/testsum", "-run", "TestX", "-rapid.checks=3", "-v"})
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.timeout=10m", "-test.run", "TestX", "-rapid.checks=3", "-test.v"}
	want := []suite{{"sluice/hack/testsum", "hack/testsum", args}, {"sluice/hack/vm", "hack/vm", args}}
	slices.SortFunc(got, func(a, b suite) int { return len(b.pkg) - len(a.pkg) })
	same := func(a, b suite) bool { return a.pkg == b.pkg && a.dir == b.dir && slices.Equal(a.args, b.args) }
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestSplit(t *testing.T) {
	got := slices.Collect(split([]string{"a", "-x", "--", "b", "--", "c", "d"}))
	want := [][]string{{"a", "-x"}, {"b"}, {"c", "d"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What one package has in /lib, and another reaches by /usr/lib, is in one place.
func TestAddFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"lib/a.so", "usr/lib/b.so", "usr/share/doc/c"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.so", filepath.Join(dir, "lib/link.so")); err != nil {
		t.Fatal(err)
	}
	got := tree{}
	if err := got.addFolder(dir, func(name string) bool { return filepath.Dir(name) == "usr/lib" }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got["usr/lib/a.so"].from != filepath.Join(dir, "lib/a.so") || got["usr/lib/b.so"].from == "" || got["usr/lib/link.so"].link != "a.so" {
		t.Errorf("%+v", got)
	}
}
