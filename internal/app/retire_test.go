package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
)

// TestRetireTellsOnce: virtual servers are looked at until none is left, and what stands in the way is told once.
func TestRetireTellsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, denied := errors.New("busy"), errors.New("denied")
		steps := []struct {
			left int
			err  error
		}{{5, busy}, {5, busy}, {3, nil}, {3, denied}, {3, denied}, {1, nil}, {0, nil}}
		calls, log := 0, bytes.Buffer{}
		retireAll(t.Context(), func(context.Context) (int, error) {
			s := steps[calls]
			calls++
			return s.left, s.err
		}, slog.New(slog.NewTextHandler(&log, nil)))
		text := log.String()
		for word, want := range map[string]int{"error=busy": 1, "error=denied": 1, "5 virtual servers": 1} {
			if got := strings.Count(text, word); got != want {
				t.Errorf("%q is told %d times, want %d:\n%s", word, got, want, text)
			}
		}
		if calls != len(steps) {
			t.Errorf("%d looks, want %d", calls, len(steps))
		}
	})
}
