package ipvs

import (
	"math"
	"testing"
	"time"
)

// A timeout that is too short or too long for the kernel becomes none that means something else.
func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]uint32{
		0: 0, 1: 1, 700 * time.Millisecond: 1, time.Second: 1, 1500 * time.Millisecond: 2, time.Hour: 3600,
		(math.MaxUint32 + 5) * time.Second: math.MaxUint32, math.MaxInt64: math.MaxUint32,
	} {
		if got := seconds(d); got != want {
			t.Errorf("%s is %d seconds, want %d", d, got, want)
		}
	}
}
