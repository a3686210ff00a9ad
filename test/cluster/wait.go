package cluster

import (
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

// WaitFor calls happened until it returns nil. If that takes too long the test ends, with its last error.
func WaitFor(t testing.TB, what string, happened func() error) {
	t.Helper()
	start := time.Now()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := happened()
		if err == nil {
			return
		}
		if time.Since(start) > patience {
			t.Fatalf("waited %s for %s: %v", patience, what, err)
		}
		time.Sleep(pause)
	}
}

// WaitAnswers dials until each of the pods ("namespace/name") has answered, and nobody else since the first of them.
// What fails before is not counted. Without pods it waits until nobody answers any more.
func (c *Cluster) WaitAnswers(t testing.TB, h *lab.Host, d lab.Dial, pods ...string) {
	t.Helper()
	seen := map[string]bool{}
	WaitFor(t, fmt.Sprintf("%s to be answered by %v", d.To, pods), func() error {
		o := Dial(t, h, d)
		if o.Action != plan.Forward {
			clear(seen)
			if len(pods) == 0 {
				return nil
			}
			return fmt.Errorf("the last was: %s", o)
		}
		if name := c.PodAt(o.Endpoint.Addr()); slices.Contains(pods, name) {
			seen[name] = true
		} else {
			clear(seen)
		}
		if len(seen) < len(pods) || len(pods) == 0 {
			return fmt.Errorf("the last was: %s; seen: %v", o, slices.Sorted(maps.Keys(seen)))
		}
		return nil
	})
}
