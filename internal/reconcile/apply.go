package reconcile

import (
	"context"
	"log/slog"
	"time"

	"sluice/internal/backend"
	"sluice/internal/plan"
)

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
		failed = l.apply(ctx, now)
	case !l.pace.sweepDue():
		return
	}
	l.sweep(ctx, failed)
}

// applyLimit bounds an Apply in case something hangs in it. The slowest honest one takes seconds.
const applyLimit = 5 * time.Minute

// apply writes the rules, and tells for which families that failed.
func (l *Loop) apply(ctx context.Context, now time.Time) [2]bool {
	ctx, cancel := context.WithTimeout(ctx, applyLimit)
	defer cancel()
	req := backend.Request{Recheck: l.pace.recheckDue(now), Hold: l.refusals.hold(now)}
	o := outcome{held: req.Hold, start: now}
	o.Result, o.err = l.Backend.Apply(ctx, l.ruleset, req)
	o.end = time.Now()
	o.failed = backend.FailedFamilies(o.err)

	l.history.NoteFrontends(o.Former)
	if len(o.Restored) > 0 {
		l.history.NoteRestored()
	}
	l.logResult(o)
	l.status.applied(o, l.Planner.Plan().Ports)
	l.noteRepair(o)
	if o.err != nil {
		wait := l.pace.failed(o.start, o.end)
		l.Log.Error("the kernel is not as it should be", "error", o.err, "retry in", wait)
	} else {
		l.pace.succeeded(o.start, o.end, req.Recheck)
		l.noteStanding()
	}
	l.noteRefusals(o)
	l.observe(o, req.Recheck)
	return o.failed
}

// noteStanding is for an Apply that succeeded.
func (l *Loop) noteStanding() {
	if !l.stands && l.Stands != nil {
		l.Stands()
	}
	l.stands = true
}

// noteRepair is for an Apply that others were the reason for.
func (l *Loop) noteRepair(o outcome) {
	called := l.pace.disturbed && !l.pace.changed
	if !called && len(o.Restored) == 0 {
		return
	}
	if tooMany := l.pace.fight.repaired(o.start, o.end, l.pace.period); tooMany && len(o.Restored) > 0 {
		l.Log.Warn("somebody keeps changing what is ours; it is restored less and less often", "what", o.Restored[0], "repairs", l.pace.fight.repairs)
	}
}

// noteRefusals has Service ports that were refused wait, and tells of each once. Until it took one, clients were
// sent where its former rules led.
func (l *Loop) noteRefusals(o outcome) {
	fresh, taken := l.refusals.settle(o)
	for _, id := range fresh {
		why := o.Refused[id]
		l.Log.Error("a Service port is refused; all others are served", "service port", name(id), "by", backend.RefusedBy(why), "error", why, "retry in", firstWait)
		if l.Refused != nil {
			l.Refused(id, o.Refused[id])
		}
	}
	for _, c := range taken {
		l.Log.Info("a Service port that was refused is taken", "service port", name(c.ID))
	}
	if len(taken) > 0 {
		l.history.Note(l.Planner.Plan().Node, plan.Changes{Ports: taken})
	}
	l.pace.refusedAt = l.refusals.next()
}

// name is a Service port in messages: with all that tells it from others.
func name(id plan.PortID) string {
	return id.String() + " (" + id.Protocol.String() + ", " + id.Family.String() + ")"
}

// restoredLimit is how many objects are named after somebody changed many: a flushed table has one or two for each endpoint.
const restoredLimit = 10

func (l *Loop) logResult(o outcome) {
	named := o.Restored[:min(len(o.Restored), restoredLimit)]
	for _, what := range named {
		l.Log.Warn("somebody else changed this; it is restored", "what", what)
	}
	if more := len(o.Restored) - len(named); more > 0 {
		l.Log.Warn("somebody else changed more; all of it is restored", "more", more)
	}
	level := slog.LevelDebug // there may be hundreds a second
	if !l.stands && o.Written > 0 {
		level = slog.LevelInfo
	}
	took := o.end.Sub(o.start).Round(10 * time.Microsecond)
	l.Log.Log(context.Background(), level, "rules written", "changed", o.Written, "service ports", len(l.Planner.Plan().Ports), "took", took)
}
