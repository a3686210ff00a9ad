package reconcile

import "time"

const (
	// freeRepairs are made at once, though each comes soon after the one before.
	freeRepairs = 5
	// firstTruce is the pause after those; each further one is twice as long, up to lastTruce. Nobody knows when the
	// stranger has had enough, and until the next repair no Service may work.
	firstTruce = 250 * time.Millisecond
	lastTruce  = 4 * time.Second
	// calm is how long nothing must have been changed for the next repair to be the first again.
	calm = 10 * time.Second
)

// fight paces repairs, so that somebody who keeps changing what is ours does not keep the kernel busy: where two daemons
// undo each other's work, the slower of them decides how much of it there is. The zero value has seen none.
type fight struct {
	repairs int // in a row
	ended   time.Time
	took    time.Duration
}

// repaired is told of an Apply, from start to end, that others were the reason for. It reports whether they have just
// become so many that the next one has to wait.
func (f *fight) repaired(start, end time.Time, period time.Duration) (tooMany bool) {
	if start.Sub(f.ended) > f.truce(period)+calm {
		f.repairs = 0
	}
	f.repairs++
	f.ended, f.took = end, end.Sub(start)
	return f.repairs == freeRepairs
}

// nextAt is the earliest time for the next repair. From the second on, a slow one, which has much to read, is followed by
// its whole share of pause.
func (f *fight) nextAt(period time.Duration) time.Time {
	if f.repairs < 2 {
		return f.ended
	}
	return f.ended.Add(max(f.truce(period), min(pauseShare*f.took, period)))
}

func (f *fight) truce(period time.Duration) time.Duration {
	if f.repairs < freeRepairs {
		return 0
	}
	return backoff(f.repairs-freeRepairs+1, firstTruce, min(lastTruce, period))
}
