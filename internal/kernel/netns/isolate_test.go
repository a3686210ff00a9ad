package netns

import (
	"errors"
	"os/exec"
	"testing"
)

func TestExitStatus(t *testing.T) {
	tests := []struct {
		script string
		want   int
	}{
		{"exit 0", 0},
		{"exit 7", 7},
		{"kill -TERM $$", 143},
	}
	for _, tt := range tests {
		got, err := exitStatus(exec.Command("sh", "-c", tt.script).Run())
		if got != tt.want || err != nil {
			t.Errorf("%q: got %d, %v, want %d", tt.script, got, err, tt.want)
		}
	}
	if _, err := exitStatus(exec.ErrNotFound); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("an error that is no exit status: %v", err)
	}
}
