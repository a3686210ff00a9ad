package demo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTeller(t *testing.T) {
	tests := []struct {
		name  string
		color bool
		want  string
	}{
		{"plain", false, `
1. A title

   It was a dark
   and stormy night.
     a quotation
     $ ls
   ok   two is two
   FAIL two is three
     a pod                    ███████████████··············· 5
`},
		{"in colour", true, "\n\x1b[1m1. A title\x1b[0m\n\n" +
			"   It was a dark\n   and stormy night.\n" +
			"     \x1b[2ma quotation\x1b[0m\n     \x1b[36m$ ls\x1b[0m\n" +
			"   \x1b[32mok  \x1b[0m two is two\n   \x1b[31mFAIL\x1b[0m two is three\n" +
			"     a pod                    \x1b[32m███████████████\x1b[0m··············· 5\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			s := teller{out: &out, color: tt.color}
			s.chapter("A title")
			s.say("It was a dark\nand stormy %s.", "night")
			s.quote("a quotation\n")
			s.command("ls")
			s.check(true, "two is %s", "two")
			s.check(false, "two is three")
			s.bar("a pod", 5, 10)
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if s.checks != 2 || s.failed != 1 {
				t.Errorf("counted %d checks, %d failed", s.checks, s.failed)
			}
		})
	}
}
