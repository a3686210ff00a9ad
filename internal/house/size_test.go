package house

import (
	"go/ast"
	"strings"
	"testing"
)

// What fits on a few screens can be reviewed; what does not has a second subject in it.
const (
	maxFile     = 500
	maxTestFile = 700
	maxFunction = 80
)

func TestFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		limit := maxFile
		if s.test {
			limit = maxTestFile
		}
		if n := strings.Count(s.text, "\n"); n > limit {
			t.Errorf("%s has %d lines, limit %d", s.path, n, limit)
		}
	}
}

// Tests are left out: a table of cases is no long function.
func TestFunctionsAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.lines(f.Pos(), f.End()); n > maxFunction {
				t.Errorf("%s: %s has %d lines, limit %d", s.path, f.Name, n, maxFunction)
			}
		}
	}
}
