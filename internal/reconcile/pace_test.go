package reconcile

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPauseFollowsFromTheApply(t *testing.T) {
	start := time.Unix(1000, 0)
	for _, tt := range []struct{ min, took, want time.Duration }{
		{time.Second, 100 * time.Microsecond, 400 * time.Microsecond},
		{time.Second, 100 * time.Millisecond, 400 * time.Millisecond},
		{time.Second, 4 * time.Second, time.Second},
		{10 * time.Second, time.Second, 4 * time.Second},
		{0, 4 * time.Second, 0},
	} {
		p := pace{min: tt.min, period: time.Minute, opened: true}
		end := start.Add(tt.took)
		p.succeeded(start, end, true)
		if at, _ := p.next(); !at.Equal(end.Add(time.Minute)) {
			t.Errorf("%+v: nothing changed, next after %v", tt, at.Sub(end))
		}
		p.changed = true
		if at, _ := p.next(); at.Sub(end) != tt.want {
			t.Errorf("%+v: next after %v", tt, at.Sub(end))
		}
		p.failed(end, end.Add(time.Microsecond))
		p.changed = true
		if at, _ := p.next(); at.Sub(p.ended) != min(tt.min, firstWait) {
			t.Errorf("%+v: after a failure next after %v", tt, at.Sub(p.ended))
		}
	}
}

// An Apply that something else held up does not hold up the changes after it.
func TestPauseForgivesOneSlowApply(t *testing.T) {
	const quick, slow = time.Millisecond, 100 * time.Millisecond
	p := pace{min: time.Second, period: time.Minute, opened: true}
	now := time.Unix(1000, 0)
	for i, tt := range []struct{ took, want time.Duration }{
		{quick, pauseShare * quick}, {slow, pauseShare * quick}, {slow, pauseShare * slow}, {quick, pauseShare * quick},
	} {
		p.succeeded(now, now.Add(tt.took), false)
		now = now.Add(tt.took)
		if got := p.changeAt().Sub(now); got != tt.want {
			t.Errorf("after Apply %d, which took %v, a change waits for %v, want %v", i, tt.took, got, tt.want)
		}
	}
}

// Whatever happens, a pace has something to do when it says so, an Apply leaves the last one its pause, and no change
// waits for longer.
func TestPaceKeepsItsBudget(t *testing.T) {
	span := func(t *rapid.T, name string) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, name))
	}
	rapid.Check(t, func(t *rapid.T) {
		p := pace{min: span(t, "min"), period: 30 * time.Second, opened: true}
		now := time.Unix(1000, 0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			p.changed, p.disturbed = rapid.Bool().Draw(t, "changed"), rapid.Bool().Draw(t, "disturbed")
			at, _ := p.next()
			now = later(now, at)
			if !p.writeDue(now) {
				t.Fatalf("nothing is due at %v: %+v", now, p)
			}
			due := !now.Before(p.recheckAt) || p.failures > 0
			if paused := now.Sub(p.ended); !due && paused < p.pause() {
				t.Fatalf("a pause of %v after %v: %+v", paused, p.took, p)
			}
			if p.changed && at.After(p.ended.Add(p.pause())) {
				t.Fatalf("a change waits until %v: %+v", at, p)
			}
			start := now
			now = now.Add(span(t, "took"))
			if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
				p.failed(start, now)
			} else {
				p.succeeded(start, now, p.recheckDue(start))
			}
			now = now.Add(span(t, "idle"))
		}
	})
}

// Somebody who undoes each repair at once is answered at once a few times, then less and less often.
func TestFightSlowsDown(t *testing.T) {
	var f fight
	now := time.Unix(1000, 0)
	start := now
	var told int
	for range 100 {
		if f.repaired(now, now.Add(time.Millisecond), 30*time.Second) {
			told++
		}
		now = later(now.Add(time.Millisecond), f.nextAt(30*time.Second))
		if f.repairs == freeRepairs && now.Sub(start) > time.Second {
			t.Errorf("the first %d took %v", freeRepairs, now.Sub(start))
		}
	}
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
	if pause := f.nextAt(30 * time.Second).Sub(f.ended); pause != lastTruce {
		t.Errorf("the pause grows to %v, want %v", pause, lastTruce)
	}
	now = now.Add(time.Minute)
	f.repaired(now, now.Add(time.Millisecond), 30*time.Second)
	if wait := f.nextAt(30 * time.Second).Sub(f.ended); wait > 0 {
		t.Errorf("after a calm minute the next repair waits for %v", wait)
	}
}

// However the repairs come, those after the free ones never take more than their share, once in a row.
func TestFightIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f fight
		period := 30 * time.Second
		now := time.Unix(1000, 0)
		begin := now
		repairs := 0
		for now.Sub(begin) < time.Hour {
			now = later(now, f.nextAt(period)).Add(time.Duration(rapid.Int64Range(0, int64(period)).Draw(t, "idle")))
			f.repaired(now, now.Add(time.Millisecond), period)
			repairs++
			if f.repairs > freeRepairs+7 && f.nextAt(period).Sub(f.ended) != lastTruce {
				t.Fatalf("%d repairs in a row, and the next after %v", f.repairs, f.nextAt(period).Sub(f.ended))
			}
		}
		if most := max(int(time.Hour/calm)*freeRepairs, int(time.Hour/lastTruce)) + 2*freeRepairs; repairs > most {
			t.Fatalf("%d repairs in an hour, want at most %d", repairs, most)
		}
	})
}
