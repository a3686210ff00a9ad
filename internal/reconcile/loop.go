package reconcile

import (
	"context"
	"log/slog"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/plan/flows"
)

// Config is how the loop is paced.
type Config struct {
	// SyncPeriod is how often the kernel is read back whole, and the longest wait before a retry.
	SyncPeriod time.Duration
	// MinSyncPeriod is the pause between the end of one Apply and the start of the next.
	MinSyncPeriod time.Duration

	Backend backend.Backend
	Planner *plan.Planner
	// Sweep removes the UDP entries of connection tracking that stale gives a reason for, and tells how many there
	// were. Nil: none are removed.
	Sweep func(ctx context.Context, stale func(flows.Flow) flows.Reason) (int, error)
	// Planned, if set, is called with every change of the plan, before the kernel is written.
	Planned func(*plan.Plan, plan.Changes)
	Log     *slog.Logger
}

// Event is news for the loop.
type Event struct {
	// Input is what the source says, nil if nothing new. The first one must hold all that there is: no rule is
	// written before it.
	Input *Input
	// Host is set when the machine's addresses are others than before.
	Host *plan.Host
}

// Input is a change of the objects, and all that is wrong with them as they are now.
type Input struct {
	Delta    model.Delta
	Problems []string
}

// Loop keeps one kernel as one plan says.
type Loop struct {
	Config
	status  status
	notices notices

	// Only Run's goroutine has the following.
	ruleset backend.Ruleset
	history flows.History
	pace    pace
}

// New makes a Loop, which does nothing until it is run.
func New(c Config) *Loop {
	l := &Loop{Config: c, notices: notices{log: c.Log}, pace: pace{min: c.MinSyncPeriod, period: c.SyncPeriod}}
	l.status.patience = 2 * c.SyncPeriod
	l.history.NoteStart()
	return l
}

// Run works until ctx ends. An Apply that is under way by then is finished first.
func (l *Loop) Run(ctx context.Context, events <-chan Event) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if at, ok := l.pace.next(); ok {
			timer.Reset(time.Until(at))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			l.absorb(e)
		case <-due:
			l.gather(events)
			l.sync(context.WithoutCancel(ctx))
		}
	}
}

// gather takes what has come in meanwhile, so that one write serves it too.
func (l *Loop) gather(events <-chan Event) {
	for {
		select {
		case e := <-events:
			l.absorb(e)
		default:
			return
		}
	}
}

func (l *Loop) absorb(e Event) {
	if e.Host != nil {
		before := l.Planner.Plan().Node
		l.planned(before, l.Planner.SetHost(*e.Host))
	}
	if e.Input != nil {
		l.notices.set("input", e.Input.Problems)
		l.pace.opened = true
		before := l.Planner.Plan().Node
		l.planned(before, l.Planner.Update(e.Input.Delta))
	}
}

// planned passes a change of the plan on to all that follow it.
func (l *Loop) planned(before plan.Node, changes plan.Changes) {
	if changes.Empty() {
		return
	}
	p := l.Planner.Plan()
	l.noticeProblems(p, changes)
	l.history.Note(before, changes)
	l.status.pending(changes, time.Now())
	l.pace.changed = true
	if l.ruleset != nil {
		l.ruleset.Update(p, changes)
	}
	if l.Planned != nil {
		l.Planned(p, changes)
	}
}

// sync does whatever is due now.
func (l *Loop) sync(ctx context.Context) {
	if l.ruleset == nil {
		l.ruleset = l.Backend.Compile(l.Planner.Plan())
	}
	now := time.Now()
	l.notices.remind(now)
	var failed [2]bool
	switch {
	case l.pace.writeDue(now):
		failed = l.apply(ctx, l.pace.recheckDue(now))
	case !l.pace.sweepDue():
		return
	}
	l.sweep(ctx, failed)
}

// applyLimit bounds an Apply in case something hangs in it. The slowest honest one takes seconds.
const applyLimit = 5 * time.Minute

// apply writes the rules, and tells for which families that failed.
func (l *Loop) apply(ctx context.Context, recheck bool) (failed [2]bool) {
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	start := time.Now()
	result, err := l.Backend.Apply(ctx, l.ruleset, backend.Request{Recheck: recheck})
	end := time.Now()
	l.history.NoteFrontends(result.Former)
	l.logResult(result, end.Sub(start))
	failed = backend.FailedFamilies(err)
	l.status.applied(failed, err, end)
	if err != nil {
		wait := l.pace.failed(end)
		l.Log.Error("the kernel is not as it should be", "error", err, "retry in", wait)
		return failed
	}
	l.pace.succeeded(end, recheck)
	return failed
}

// restoredLimit is how many objects are named after somebody changed many: a flushed table has one or two for each endpoint.
const restoredLimit = 10

func (l *Loop) logResult(r backend.Result, took time.Duration) {
	named := r.Restored[:min(len(r.Restored), restoredLimit)]
	for _, what := range named {
		l.Log.Warn("somebody else changed this; it is restored", "what", what)
	}
	if more := len(r.Restored) - len(named); more > 0 {
		l.Log.Warn("somebody else changed more; all of it is restored", "more", more)
	}
	level := slog.LevelInfo
	if r.Written == 0 {
		level = slog.LevelDebug
	}
	l.Log.Log(context.Background(), level, "rules written", "changed", r.Written, "service ports", len(l.Planner.Plan().Ports), "took", took.Round(time.Millisecond))
}

// sweep removes what connection tracking still does by rules of the past. It comes after the rules, or clients that
// keep sending would be led astray again at once; so the entries of a family whose rules failed stay until these are
// right.
func (l *Loop) sweep(ctx context.Context, failed [2]bool) {
	switch {
	case failed == [2]bool{true, true}:
		return
	case !l.history.Due() || l.Sweep == nil:
		l.history.Forget()
		return
	}
	p := l.Planner.Plan()
	removed, err := l.Sweep(ctx, func(f flows.Flow) flows.Reason {
		if failed[model.FamilyOf(f.To.Addr())] {
			return flows.Fresh
		}
		reason := l.history.Stale(p, f)
		if reason != flows.Fresh {
			l.Log.Debug("stale UDP entry", "client", f.Client, "to", f.To, "server", f.Server, "because", string(reason))
		}
		return reason
	})
	if removed > 0 {
		l.Log.Info("stale UDP entries of connection tracking removed", "entries", removed)
	}
	if err != nil {
		wait := l.pace.sweepFailed(time.Now())
		l.Log.Error("stale UDP entries of connection tracking may be left", "error", err, "retry in", wait)
		return
	}
	l.pace.swept()
	if failed == [2]bool{} {
		l.history.Forget()
	}
}
