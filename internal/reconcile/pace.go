package reconcile

import "time"

// firstWait is the wait before the first retry; each further one is twice as long, up to the sync period.
const firstWait = time.Second

// pace decides when something is to be done. It reads no clock.
type pace struct {
	min, period time.Duration

	opened  bool      // the source has said all it has
	changed bool      // the plan changed since the last Apply began
	ended   time.Time // the last Apply; zero: none yet

	failures  int       // of Apply, in a row
	retryAt   time.Time // if failures > 0
	recheckAt time.Time

	sweepFailures int
	sweepAt       time.Time // if sweepFailures > 0
}

// next is the time at which something is due.
func (p *pace) next() (at time.Time, ok bool) {
	if !p.opened {
		return time.Time{}, false
	}
	at = p.recheckAt
	earlier := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	if p.changed && !p.ended.IsZero() {
		earlier(p.ended.Add(p.min))
	}
	if p.failures > 0 {
		earlier(p.retryAt)
	}
	if p.sweepDue() {
		earlier(p.sweepAt)
	}
	return at, true
}

// writeDue reports whether an Apply is due.
func (p *pace) writeDue(now time.Time) bool {
	due := p.changed && !now.Before(p.ended.Add(p.min))
	retry := p.failures > 0 && !now.Before(p.retryAt)
	return due || retry || !now.Before(p.recheckAt)
}

// recheckDue reports whether the kernel is to be read back whole: in every period, and after a failure, which may
// have left anything.
func (p *pace) recheckDue(now time.Time) bool { return p.failures > 0 || !now.Before(p.recheckAt) }

// failed is told of an Apply that failed and ended now; it returns the wait before the next.
func (p *pace) failed(now time.Time) time.Duration {
	p.ended, p.changed = now, false
	p.failures++
	wait := p.backoff(p.failures)
	p.retryAt = now.Add(wait)
	p.recheckAt = now.Add(max(p.period, wait))
	return wait
}

// succeeded is told of an Apply that ended now.
func (p *pace) succeeded(now time.Time, rechecked bool) {
	p.ended, p.changed, p.failures = now, false, 0
	if rechecked {
		p.recheckAt = now.Add(p.period)
	}
}

func (p *pace) sweepFailed(now time.Time) time.Duration {
	p.sweepFailures++
	wait := p.backoff(p.sweepFailures)
	p.sweepAt = now.Add(wait)
	return wait
}

// sweepDue reports whether a sweep is to be repeated. Before the rules are right there is no point in it: the write that
// makes them so is followed by one.
func (p *pace) sweepDue() bool { return p.sweepFailures > 0 && p.failures == 0 && !p.changed }

func (p *pace) swept() { p.sweepFailures = 0 }

func (p *pace) backoff(failures int) time.Duration {
	wait := firstWait
	for i := 1; i < failures && wait < p.period; i++ {
		wait *= 2
	}
	return min(wait, p.period)
}
