package reconcile

import "time"

// firstWait is the wait before the first retry; each further one is twice as long, up to the sync period.
const firstWait = time.Second

// pauseShare is how many times as long as an Apply the pause after it is, so that a burst of changes takes a fifth of a
// processor at most, and a kernel that is quick is not made to wait.
const pauseShare = 4

// pace decides when something is to be done. It reads no clock.
type pace struct {
	min, period time.Duration

	opened  bool          // the source has said all it has
	changed bool          // the plan changed since the last Apply began
	ended   time.Time     // the last Apply; zero: none yet
	took    time.Duration // the last Apply
	before  time.Duration // the one before it; 0: there was none

	disturbed bool // somebody may have changed what is ours since the last Apply began
	fight     fight

	failures  int       // of Apply, in a row
	retryAt   time.Time // if failures > 0
	recheckAt time.Time
	refusedAt time.Time // when a Service port that the kernel refused is due again; zero: none

	sweepFailures int
	sweepAt       time.Time // if sweepFailures > 0
}

// configure changes the periods. Nothing waits for longer than the new ones say.
func (p *pace) configure(min, period time.Duration) {
	p.min, p.period = min, period
	for _, at := range []*time.Time{&p.recheckAt, &p.retryAt, &p.sweepAt} {
		if latest := p.ended.Add(period); at.After(latest) {
			*at = latest
		}
	}
}

// next is the time at which something is due.
func (p *pace) next() (at time.Time, ok bool) {
	if !p.opened {
		return time.Time{}, false
	}
	at = p.recheckAt
	earlier := func(due bool, t time.Time) {
		if due && t.Before(at) {
			at = t
		}
	}
	earlier(p.changed, p.changeAt())
	earlier(p.repairWanted(), p.repairAt())
	earlier(!p.refusedAt.IsZero(), p.refusedRetryAt())
	earlier(p.failures > 0, p.retryAt)
	earlier(p.sweepDue(), p.sweepAt)
	return at, true
}

// changeAt is when a change of the plan may be written.
func (p *pace) changeAt() time.Time { return p.ended.Add(p.pause()) }

// pause is the least time between two Applies. One that failed will as likely fail again, and is no measure.
func (p *pace) pause() time.Duration {
	if p.failures > 0 {
		return p.min
	}
	return min(p.min, pauseShare*p.cost())
}

// cost is about what an Apply takes: what the quicker of the last two did. The other one may have waited for a processor,
// and changes would wait several times as long again.
func (p *pace) cost() time.Duration {
	if p.before == 0 {
		return p.took
	}
	return min(p.took, p.before)
}

// repairWanted reports whether to look at what others did. After a failure the retry does that.
func (p *pace) repairWanted() bool { return p.disturbed && p.failures == 0 }

func (p *pace) repairAt() time.Time { return later(p.changeAt(), p.fight.nextAt(p.period)) }

// refusedRetryAt leaves the pause that an Apply deserves even where that is longer than min: many ports that are refused,
// each at its own time, must not keep the kernel busy.
func (p *pace) refusedRetryAt() time.Time {
	return later(p.refusedAt, p.ended.Add(min(pauseShare*p.cost(), p.period)))
}

// writeDue reports whether an Apply is due.
func (p *pace) writeDue(now time.Time) bool {
	return p.changed && !now.Before(p.changeAt()) ||
		p.repairWanted() && !now.Before(p.repairAt()) ||
		!p.refusedAt.IsZero() && !now.Before(p.refusedRetryAt()) ||
		p.failures > 0 && !now.Before(p.retryAt) ||
		!now.Before(p.recheckAt)
}

// recheckDue reports whether the kernel is to be read back whole: in every period, and after a failure, which may
// have left anything.
func (p *pace) recheckDue(now time.Time) bool { return p.failures > 0 || !now.Before(p.recheckAt) }

// failed is told of an Apply that began and ended then and failed; it returns the wait before the next.
func (p *pace) failed(start, end time.Time) time.Duration {
	p.applied(start, end)
	p.failures++
	wait := backoff(p.failures, firstWait, p.period)
	p.retryAt = end.Add(wait)
	p.recheckAt = end.Add(max(p.period, wait))
	return wait
}

// succeeded is told of an Apply that did not fail.
func (p *pace) succeeded(start, end time.Time, rechecked bool) {
	p.applied(start, end)
	p.failures = 0
	if rechecked {
		p.recheckAt = end.Add(p.period)
	}
}

func (p *pace) applied(start, end time.Time) {
	p.ended, p.took, p.before = end, end.Sub(start), p.took
	p.changed, p.disturbed = false, false
}

func (p *pace) sweepFailed(now time.Time) time.Duration {
	p.sweepFailures++
	wait := backoff(p.sweepFailures, firstWait, p.period)
	p.sweepAt = now.Add(wait)
	return wait
}

// sweepDue reports whether a sweep is to be repeated. Before the rules are right there is no point in it: the write that
// makes them so is followed by one.
func (p *pace) sweepDue() bool { return p.sweepFailures > 0 && p.failures == 0 && !p.changed }

func (p *pace) swept() { p.sweepFailures = 0 }

// backoff is the wait after a number of failures in a row: first, then twice as long each time, up to limit.
func backoff(failures int, first, limit time.Duration) time.Duration {
	wait := first
	for i := 1; i < failures && wait < limit; i++ {
		wait *= 2
	}
	return min(wait, limit)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
