package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// A count that fails is told once, however often it is asked for, and again when it fails anew.
func TestFailedCountIsToldOnce(t *testing.T) {
	var said bytes.Buffer
	var err error
	count := toldOnce(func(context.Context) (int, error) { return 1, err }, "sheep", slog.New(slog.NewTextHandler(&said, nil)))
	ended, end := context.WithCancel(t.Context())
	end()
	for i, step := range []struct {
		ctx  context.Context
		err  error
		told int // so far
	}{
		{t.Context(), nil, 0},
		{ended, errors.New("no time"), 0},
		{t.Context(), errors.New("no"), 1},
		{t.Context(), errors.New("no"), 1},
		{ended, errors.New("no time"), 1},
		{t.Context(), nil, 1},
		{t.Context(), errors.New("no"), 2},
	} {
		err = step.err
		if _, got := count(step.ctx); !errors.Is(got, err) {
			t.Errorf("step %d: error %v", i, got)
		}
		if told := strings.Count(said.String(), "what=sheep error=no"); told != step.told {
			t.Errorf("step %d: told %d times, want %d:\n%s", i, told, step.told, &said)
		}
	}
}
