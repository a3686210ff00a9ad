package nftables

import (
	"os"
	"strings"
	"testing"

	"sluice/internal/testkit/golden"
)

// TestReadmeExcerpt keeps the elements in README.md equal to those that are compiled.
func TestReadmeExcerpt(t *testing.T) { golden.Excerpt(t, "README.md", fourElements(t)) }

// fourElements are the IPv4 elements of a golden file, indented, and without the zeros of counters.
func fourElements(t *testing.T) (text string) {
	t.Helper()
	golden, err := os.ReadFile("testdata/load-balancer-local.elements")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(golden)) {
		if name, _, _ := strings.Cut(l, ":"); strings.HasSuffix(name, "4") {
			text += "    " + l
		}
	}
	return text
}
