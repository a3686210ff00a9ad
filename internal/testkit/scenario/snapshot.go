package scenario

import (
	"strings"
	"testing"

	"sluice/internal/model"
	"sluice/internal/source/convert"
	"sluice/internal/source/manifest"
)

// Snapshot reads manifests, in which nothing may be wrong.
func Snapshot(t testing.TB, text string) *model.Snapshot {
	t.Helper()
	s, problems, err := manifest.Read([]string{manifest.Stdin}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Severity == convert.Error {
			t.Error(p)
		}
	}
	return s
}
