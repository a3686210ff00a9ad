package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"sluice/internal/lab"
	"sluice/internal/plan"
)

// patience is how long a test waits for what is bound to come. Only a test that fails waits that long.
const patience = 90 * time.Second

// hopeless wraps an error that no waiting helps against.
type hopeless struct{ error }

// WaitFor calls happened until it returns nil. If that takes too long the test ends, with its last error.
func WaitFor(t testing.TB, what string, happened func() error) {
	t.Helper()
	start := time.Now()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := happened()
		if err == nil {
			return
		}
		if errors.As(err, new(hopeless)) {
			t.Fatalf("waited for %s: %v", what, err)
		}
		if time.Since(start) > patience {
			t.Fatalf("waited %s for %s: %v", patience, what, err)
		}
		time.Sleep(pause)
	}
}

// WaitAnswers dials until each of the pods ("namespace/name") has answered, and nobody else and no failure since the
// first of them. Without pods it waits until nobody answers any more.
func (c *Cluster) WaitAnswers(t testing.TB, h *lab.Host, d lab.Dial, pods ...string) {
	t.Helper()
	seen := map[string]bool{}
	WaitFor(t, fmt.Sprintf("%s to be answered by %v", d.To, pods), func() error {
		for {
			o := Dial(t, h, d)
			name := c.PodAt(o.Endpoint.Addr())
			switch {
			case o.Action != plan.Forward && len(pods) == 0:
				return nil
			case o.Action != plan.Forward || !slices.Contains(pods, name):
				clear(seen)
				return fmt.Errorf("the last was: %s (%s)", o, name)
			case seen[name] && len(seen) < len(pods):
				return fmt.Errorf("so far only %v answered", slices.Sorted(maps.Keys(seen)))
			}
			if seen[name] = true; len(seen) == len(pods) {
				return nil
			}
		}
	})
}
