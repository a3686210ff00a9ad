package reconcile

import (
	"context"
	"time"

	"sluice/internal/backend"
)

// watch has the kernel tell of what others do, if this mode can have it so, until ctx ends. Where it cannot, reading
// back in every sync period is what is left.
func (l *Loop) watch(ctx context.Context) {
	w, ok := l.Backend.(backend.Watcher)
	if !ok {
		return
	}
	for failures := 1; ; failures++ {
		began := time.Now()
		err := w.Watch(ctx, l.disturb)
		if ctx.Err() != nil || err == nil {
			return
		}
		period := l.status.syncPeriod()
		if time.Since(began) > period {
			failures = 1
		}
		wait := backoff(failures, firstWait, period)
		if failures == 1 {
			l.Log.Error("changes that others make to the rules may be noticed late", "error", err, "retry in", wait)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// disturb has Run look at what others did.
func (l *Loop) disturb() {
	select {
	case l.disturbed <- struct{}{}:
	default: // it is about to look anyway
	}
}
