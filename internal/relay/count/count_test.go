package count_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/relay/count"
)

// Every number of a Counter is in its parent's too.
func TestSums(t *testing.T) {
	total := count.New(nil)
	var all sync.WaitGroup
	for range 3 {
		c := count.New(total)
		for range 4 {
			all.Go(func() { countAll(c) })
		}
	}
	all.Wait()
	want := count.Counts{
		Accepted: 12, Open: 12, DialFailures: 12, In: 120, Out: 240, Copied: 120, Ended: 12, Duration: 12 * time.Second,
	}
	want.Refused[count.Limit] = 12
	if diff := cmp.Diff(want, total.Counts()); diff != "" {
		t.Error(diff)
	}
}

func countAll(c *count.Counter) {
	c.Accept()
	c.Begin()
	c.Begin()
	c.End()
	c.Refuse(count.Limit)
	c.DialFailed()
	c.In(10, true)
	c.Out(20, false)
	c.Ended(time.Second)
}

func TestReasonsHaveNames(t *testing.T) {
	names := map[string]bool{}
	for r := range count.Reasons {
		names[r.String()] = true
	}
	if len(names) != int(count.Reasons) {
		t.Errorf("%d names for %d reasons", len(names), count.Reasons)
	}
}

// What happens often is told at once, and then once in half a minute, with how often it was.
func TestOccasion(t *testing.T) {
	var o count.Occasion
	now := time.Unix(1000, 0)
	type told struct {
		times int64
		tell  bool
	}
	happened := func(after time.Duration) told {
		now = now.Add(after)
		times, tell := o.Happened(now)
		return told{times, tell}
	}
	for i, c := range []struct {
		after time.Duration
		want  told
	}{
		{0, told{1, true}},
		{time.Second, told{}},
		{28 * time.Second, told{}},
		{time.Second, told{3, true}},
		{0, told{}},
	} {
		if got := happened(c.after); got != c.want {
			t.Errorf("time %d: got %+v, want %+v", i, got, c.want)
		}
	}
}
