package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestCounts(t *testing.T) {
	tests := []struct {
		name, in string
		want     string
	}{
		{"nothing ran", ``, "0 passed, 1 failed, 0 skipped"},
		{"leaves count", `
			{"Action":"run","Package":"p","Test":"A"}
			{"Action":"run","Package":"p","Test":"A/x"}
			{"Action":"run","Package":"p","Test":"A/y"}
			{"Action":"pass","Package":"p","Test":"A/x"}
			{"Action":"skip","Package":"p","Test":"A/y"}
			{"Action":"pass","Package":"p","Test":"A"}
			{"Action":"pass","Package":"p"}`, "1 passed, 0 failed, 1 skipped"},
		{"a failed subtest fails once", `
			{"Action":"run","Package":"p","Test":"A/x"}
			{"Action":"fail","Package":"p","Test":"A/x"}
			{"Action":"fail","Package":"p","Test":"A"}
			{"Action":"fail","Package":"p"}`, "0 passed, 1 failed, 0 skipped"},
		{"a parent can fail by itself", `
			{"Action":"run","Package":"p","Test":"A/x"}
			{"Action":"pass","Package":"p","Test":"A/x"}
			{"Action":"fail","Package":"p","Test":"A"}
			{"Action":"fail","Package":"p"}`, "1 passed, 1 failed, 0 skipped"},
		{"a package that does not build", `
			{"Action":"build-output","ImportPath":"p","Output":"undefined: x"}
			{"Action":"fail","Package":"p"}`, "0 passed, 1 failed, 0 skipped"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSummary()
			if err := s.read(strings.NewReader(strings.ReplaceAll(tt.in, "\t", ""))); err != nil {
				t.Fatal(err)
			}
			if got := s.counts().String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCountsAddUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts.json")
	for _, c := range []counts{{Passed: 2, Skipped: 1}, {Passed: 3, Failed: 1, Steps: []string{"lint"}}} {
		if err := add(file, c); err != nil {
			t.Fatal(err)
		}
	}
	c, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.String(), "5 passed, 1 failed, 1 skipped"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPrintShowsWhatFailedAndWhy(t *testing.T) {
	s := newSummary()
	in := `{"Action":"output","Package":"p","Test":"A","Output":"    a_test.go:1: wrong\n"}
{"Action":"fail","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"    b_test.go:1: needs kernel 9\n"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"fail","Package":"p","Elapsed":1}
`
	if err := s.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s.print(&out)
	for _, want := range []string{"fail  p (1.0s)", "a_test.go:1: wrong", "skipped: p B: b_test.go:1: needs kernel 9"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}
