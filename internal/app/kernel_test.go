package app

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestReadOnlySettingIsToldOnceAndTriedAgain(t *testing.T) {
	var log strings.Builder
	readOnly := errors.New("/proc/sys is read-only here")
	tries, fail := 0, readOnly
	set := forDaemon(func(bool) error { tries++; return fail }, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		if err := set(true); err != nil {
			t.Fatalf("it holds up the daemon: %v", err)
		}
	}
	if n := strings.Count(log.String(), readOnly.Error()); tries != 3 || n != 1 {
		t.Errorf("tried %d times, told %d times: %s", tries, n, log.String())
	}
	fail = nil
	_ = set(true)
	fail = readOnly
	_ = set(true)
	if n := strings.Count(log.String(), readOnly.Error()); n != 2 {
		t.Errorf("after it worked for a while: told %d times", n)
	}
}
