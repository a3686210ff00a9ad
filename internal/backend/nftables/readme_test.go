package nftables

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadmeExcerpt keeps the elements in README.md equal to those that are compiled.
func TestReadmeExcerpt(t *testing.T) {
	const begin, end = "<!-- begin excerpt -->\n", "<!-- end excerpt -->\n"
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	excerpt, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatal("README.md has no excerpt")
	}
	want := "\n" + fourElements(t) + "\n"
	if *update {
		if err := os.WriteFile("README.md", []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, excerpt); diff != "" {
		t.Errorf("README.md differs (-want +got); go test -update writes it anew:\n%s", diff)
	}
}

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
