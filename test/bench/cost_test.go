package bench

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// cost is what something took.
type cost struct {
	wall, cpu     time.Duration
	allocs, bytes uint64 // that this process allocated
	peak          int    // bytes of memory, instead of times
}

// measure takes the time of f, and that which this process and the programs that it waited for had on processors.
func measure(b *testing.B, f func() error) cost {
	b.Helper()
	runtime.GC() // what was before shall not count
	return measureNow(b, f)
}

// measureNow is measure for what is done many times over.
func measureNow(b *testing.B, f func() error) cost {
	b.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, begin := used(b), time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	c := cost{wall: time.Since(begin), cpu: used(b) - cpu}
	runtime.ReadMemStats(&after)
	c.allocs, c.bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return c
}

func used(b *testing.B) (total time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if err := syscall.Getrusage(who, &r); err != nil {
			b.Fatal(err)
		}
		total += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return total
}

// plus is what two things took one after the other.
func (c cost) plus(d cost) cost {
	return cost{wall: c.wall + d.wall, cpu: c.cpu + d.cpu, allocs: c.allocs + d.allocs, bytes: c.bytes + d.bytes}
}

// quicker is the one of two that took less CPU time. One without any does not count.
func quicker(a, b cost) cost {
	if a.cpu == 0 || b.cpu < a.cpu {
		return b
	}
	return a
}

// median is the one in the middle by CPU time. There is at least one.
func median(costs []cost) cost {
	sorted := slices.SortedFunc(slices.Values(costs), func(a, b cost) int { return cmp.Compare(a.cpu, b.cpu) })
	return sorted[len(sorted)/2]
}

// milliseconds has three digits that count.
func milliseconds(d time.Duration) string {
	ms := float64(d.Nanoseconds()) / 1e6
	switch {
	case ms >= 100:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f", ms)
	case ms >= 1:
		return fmt.Sprintf("%.2f", ms)
	}
	return fmt.Sprintf("%.3f", ms)
}

// ratio is empty if there is nothing to compare with.
func ratio(a, b time.Duration) string {
	if a == 0 || b == 0 {
		return ""
	}
	if r := float64(a) / float64(b); r < 100 {
		return fmt.Sprintf("%.2f", r)
	}
	return fmt.Sprintf("%.0f", float64(a)/float64(b))
}
