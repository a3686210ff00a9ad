package figures_test

import (
	"os"
	"path/filepath"
	"testing"

	"sluice/internal/testkit/figures"
)

func TestPublish(t *testing.T) {
	const before = "a\n<!-- x: begin, written by make x -->\nold\nold\n<!-- x: end -->\nb\n<!-- y: begin, written by make y -->\nstays\n<!-- y: end -->\n"
	const want = "a\n<!-- x: begin, written by make x -->\n| head | n |\n|---|--:|\n| row | $1 |\n<!-- x: end -->\nb\n<!-- y: begin, written by make y -->\nstays\n<!-- y: end -->\n"
	document := filepath.Join(t.TempDir(), "document.md")
	if err := os.WriteFile(document, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	g := figures.Grid{Head: []string{"head", "n"}}
	g.Add("row", "$1")
	for _, update := range []bool{false, true} {
		figures.Publish(t, document, "x", g.String(), update)
		got, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		if expected := map[bool]string{false: before, true: want}[update]; string(got) != expected {
			t.Errorf("update %t: got\n%s\nwant\n%s", update, got, expected)
		}
	}
}
