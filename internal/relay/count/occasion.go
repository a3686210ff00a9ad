package count

import (
	"sync/atomic"
	"time"
)

// quiet is how long an occasion is not told of again.
const quiet = 30 * time.Second

// Occasion is something that may happen very often and is worth a line in the log once in a while.
type Occasion struct {
	last  atomic.Int64 // when it was told, in nanoseconds; 0: never
	count atomic.Int64 // since then
}

// Happened counts it. It returns how often it has happened since it was last told, if that is to be told now.
func (o *Occasion) Happened(now time.Time) (times int64, tell bool) {
	o.count.Add(1)
	last := o.last.Load()
	if last != 0 && now.UnixNano()-last < int64(quiet) || !o.last.CompareAndSwap(last, now.UnixNano()) {
		return 0, false
	}
	return o.count.Swap(0), true
}
