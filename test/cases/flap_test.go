package cases

import (
	"testing"
	"time"
)

// An endpoint that leaves and returns within one sync, or within a few, ends up in use, and nobody stumbles.
func TestAnEndpointThatFlaps(t *testing.T) {
	for _, pause := range []time.Duration{0, 300 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			st := open(t, "endpoint-leaves-and-returns")
			st.objects(1)
			st.start()
			st.flows(1)
			for range 3 {
				for step := 1; step <= 3; step++ {
					st.objects(step)
					time.Sleep(pause)
				}
			}
			st.flows(3)
			time.Sleep(3 * time.Second) // longer than the sync period, after which the kernel is read back
			st.flows(3)
			st.quiet()
		})
	}
}

// The same, but each step has its effect before the next.
func TestAnEndpointThatLeavesAndReturnsSlowly(t *testing.T) {
	st := open(t, "endpoint-leaves-and-returns")
	for step := 1; step <= 3; step++ {
		st.objects(step)
		if step == 1 {
			st.start()
		}
		st.flows(step)
	}
	st.quiet()
}
