package manifest_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"sluice/internal/source/manifest"
)

// FuzzRead reads any text: it is never an error, whatever is wrong has a place in the text, and the same text means the
// same each time.
func FuzzRead(f *testing.F) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, problems, err := manifest.Read([]string{manifest.Stdin}, bytes.NewReader(text))
		if err != nil {
			t.Fatalf("error: %v", err)
		}
		count := 1 + bytes.Count(text, []byte("\n"))
		for _, p := range problems {
			if p.Line < 1 || p.Line > count || p.Document < 1 || p.Message == "" || strings.Contains(p.Error(), "\n") {
				t.Errorf("%d lines: problem %+v", count, p)
			}
		}
		second, again, _ := manifest.Read([]string{manifest.Stdin}, bytes.NewReader(text))
		if diff := cmp.Diff(describe(first), describe(second)); diff != "" {
			t.Errorf("second reading (-first +second):\n%s", diff)
		}
		if diff := cmp.Diff(lines(problems), lines(again)); diff != "" {
			t.Errorf("problems of the second reading (-first +second):\n%s", diff)
		}
	})
}

// TestSplitOverFiles is that it means the same in which files, in which order and in which form objects are written.
func TestSplitOverFiles(t *testing.T) {
	objects := objectTexts(t)
	together := filepath.Join(t.TempDir(), "all.yaml")
	write(t, together, strings.Join(objects, "\n---\n"))
	want, problems, err := manifest.Read([]string{together}, nil)
	if err != nil || len(problems) > 0 || len(want.Services) == 0 {
		t.Fatalf("snapshot %v, problems %v, error %v", want, problems, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "manifest") //nolint:usetesting // rapid.T has no TempDir
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		files := map[string][]string{}
		for _, o := range rapid.Permutation(objects).Draw(t, "order") {
			file := fmt.Sprintf("%d.yaml", rapid.IntRange(0, 4).Draw(t, "file"))
			files[file] = append(files[file], o)
		}
		for file, objects := range files {
			text := strings.Join(objects, "\n---\n")
			if rapid.Bool().Draw(t, "list") {
				text = list(objects)
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, problems, err := manifest.Read([]string{dir}, nil)
		if err := errors.Join(err, joined(problems)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(describe(want), describe(got)); diff != "" {
			t.Errorf("snapshot (-together +split):\n%s", diff)
		}
	})
}

// objectTexts are the objects of the archive about endpoints, which hang together across kinds. The Pod that is told
// of as a problem is left out.
func objectTexts(t *testing.T) (out []string) {
	archive, err := txtar.ParseFile("testdata/endpoints.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if filepath.Ext(f.Name) != ".yaml" {
			continue
		}
		for text := range strings.SplitSeq(string(f.Data), "---\n") {
			if !strings.Contains(text, "web-3") {
				out = append(out, text)
			}
		}
	}
	return out
}

func list(objects []string) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for _, o := range objects {
		b.WriteString("- " + strings.ReplaceAll(strings.TrimSpace(o), "\n", "\n  ") + "\n")
	}
	return b.String()
}

func joined(problems []manifest.Problem) error {
	var errs []error
	for _, p := range problems {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}
