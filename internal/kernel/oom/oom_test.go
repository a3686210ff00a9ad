package oom_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"sluice/internal/kernel/oom"
)

// To raise one's own score takes no right, nor does taking that back.
func TestSetScore(t *testing.T) {
	was, err := oom.Score()
	if err != nil {
		t.Fatal(err)
	}
	for _, score := range []int{1000, was} {
		if err := oom.SetScore(score); err != nil {
			t.Error(err)
		}
		if got, err := oom.Score(); got != score || err != nil {
			t.Errorf("got %d, %v; want %d", got, err, score)
		}
	}
}

func TestErrorsNameTheScores(t *testing.T) {
	err := oom.SetScore(1001)
	if err == nil || errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "to 1001: ") {
		t.Errorf("got %v", err)
	}
}

// Where a process may lower its score this is a test of that, else of how the refusal is told.
func TestLowering(t *testing.T) {
	was, err := oom.Score()
	if err != nil {
		t.Fatal(err)
	}
	err = oom.SetScore(-1000)
	switch got, _ := oom.Score(); {
	case err == nil && got == -1000:
		if err := oom.SetScore(was); err != nil {
			t.Error(err)
		}
	case got != was || !errors.Is(err, fs.ErrPermission):
		t.Errorf("the score was %d, is %d: %v", was, got, err)
	}
}
