package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sluice/internal/config"
	"sluice/internal/reconcile"
)

// reading is what the configuration said, or what is wrong with it.
type reading struct {
	config   config.Config
	warnings []string
	err      error
}

// follower has the daemon do as its configuration says. What a mode that cannot start would be needed for is tried again,
// since the reason may pass: too many open files, a program that is being replaced.
type follower struct {
	*daemon
	// wanted is what the configuration said when it was last right.
	wanted config.Config
	// What is wrong: with what was last read, with what takes a start, and with the mode that is wanted, or empty.
	read, restart []string
	mode          string
	// wait is the time from the last try of that mode to the next, which again tells; nil: there is no other.
	wait  time.Duration
	again <-chan time.Time
}

// run works until ctx ends.
func (f *follower) run(ctx context.Context, readings <-chan reading) {
	for {
		select {
		case r := <-readings:
			f.hear(ctx, r)
		case <-f.again:
			f.enforce(ctx)
		case <-ctx.Done():
			return
		}
		f.heard(ctx, reconcile.Event{Problems: map[any][]string{configTopic: f.problems()}})
	}
}

func (f *follower) problems() []string {
	all := slices.Concat(f.read, f.restart)
	if f.mode != "" {
		all = append(all, f.mode)
	}
	return all
}

// hear does as a reading says.
func (f *follower) hear(ctx context.Context, r reading) {
	f.read = r.warnings
	if r.err != nil {
		f.read = append(slices.Clone(r.warnings), r.err.Error()+" (what it said before stays in force)")
		return
	}
	f.wanted, f.wait = r.config, 0
	f.enforce(ctx)
	now := f.config()
	f.Log.follow(now.Log)
	f.ports.follow(now.Serve)
	f.Log.Info("the configuration changed", "mode", now.Mode)
}

// enforce does as is wanted, as far as that can be now.
func (f *follower) enforce(ctx context.Context) {
	next := f.engineFor(ctx, f.fit(ctx))
	if ctx.Err() != nil {
		return
	}
	f.setConfig(next)
	f.setUpMachine(next.Host)
}

// fit is what is wanted, but for what takes a start.
func (f *follower) fit(ctx context.Context) config.Config {
	now, next := f.config(), f.wanted
	f.restart = nil
	if next.Mode == "" {
		mode, _ := choose(ctx) // as a new start would
		next, f.restart = next.For(mode)
	}
	for _, what := range config.Restart(f.atStart, next) {
		f.restart = append(f.restart, what+"; it takes effect when sluice starts again")
	}
	next.Client, next.Plan.NodeName, next.Log.Format = now.Client, now.Plan.NodeName, now.Log.Format
	return next
}

// engineFor has an engine do as next says, and returns what is in force then. A mode that cannot start leaves the one
// before at work.
func (f *follower) engineFor(ctx context.Context, next config.Config) config.Config {
	now := f.config()
	err := f.followEngine(ctx, now, next)
	if err == nil || ctx.Err() != nil {
		f.mode, f.again = "", nil
		return next
	}
	f.mode = fmt.Sprintf("mode %s: %v; the mode stays as it was until it can start", next.Mode, err)
	f.wait = retryWait(f.wait, now.SyncPeriod)
	f.again = time.After(f.wait)
	next = withEngineOf(now, next)
	f.followLive(ctx, next)
	return next
}

const (
	firstRetry   = time.Second
	longestRetry = time.Minute
)

// retryWait is the wait after one, at first zero: it doubles up to the period of a sync, or a minute.
func retryWait(last, period time.Duration) time.Duration {
	return min(max(2*last, firstRetry), max(period, firstRetry), longestRetry)
}
