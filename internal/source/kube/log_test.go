package kube

import (
	"errors"
	"log/slog"
	"testing"

	"k8s.io/klog/v2"
)

// What client-go says is softer than what we say.
func TestLibraryLog(t *testing.T) {
	log := &logBuffer{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	from := klog.FromContext(withLibraryLog(t.Context(), logger))
	from.Error(errors.New("no"), "an error", "of", "it")
	from.Info("an information")
	from.V(1).Info("something verbose")
	for text, want := range map[string]int{
		`level=WARN msg="an error" err=no of=it`: 1,
		`level=DEBUG msg="an information"`:       1,
		"verbose":                                0,
	} {
		if n := log.count(text); n != want {
			t.Errorf("%q is logged %d times, want %d:\n%s", text, n, want, log)
		}
	}
}
