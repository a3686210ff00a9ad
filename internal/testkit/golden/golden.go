package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// File compares with a file of testdata.
func File(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		write(t, file, got)
	}
	compare(t, file, read(t, file), got)
}

// Excerpt compares with what a README has between its marks for an excerpt.
func Excerpt(t testing.TB, file, got string) {
	t.Helper()
	const begin, end = "<!-- begin excerpt -->\n", "<!-- end excerpt -->\n"
	before, rest, _ := strings.Cut(read(t, file), begin)
	excerpt, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatal(file, "has no excerpt")
	}
	got = "\n" + got + "\n"
	if *update {
		write(t, file, before+begin+got+end+after)
		return
	}
	compare(t, file, excerpt, got)
}

func compare(t testing.TB, file, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got); go test -update writes it anew:\n%s", file, diff)
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
