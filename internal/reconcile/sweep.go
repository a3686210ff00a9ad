package reconcile

import (
	"context"
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/plan/flows"
)

// sweep removes what connection tracking still does by rules of the past. It comes after the rules, or clients that
// keep sending would be led astray again at once; so the entries of a family whose rules failed stay until these are
// right.
func (l *Loop) sweep(ctx context.Context, failed [2]bool) {
	led := l.led()
	switch {
	case failed == [2]bool{true, true}:
		return
	case !l.history.Due() || l.Sweep == nil:
		l.history.Forget()
		return
	}
	p := l.Planner.Plan()
	start := time.Now()
	removed, err := l.Sweep(ctx, func(f flows.Flow) flows.Reason {
		if failed[model.FamilyOf(f.To.Addr())] {
			return flows.Fresh
		}
		reason := l.history.Stale(p, f)
		if reason != flows.Fresh && led != nil {
			reason = l.history.Stale(led, f)
		}
		if reason != flows.Fresh {
			l.Log.Debug("stale UDP entry", "client", f.Client, "to", f.To, "server", f.Server, "because", string(reason))
		}
		return reason
	})
	if l.Observer != nil {
		l.Observer.Swept(time.Since(start), removed, err)
	}
	if n := removed[0] + removed[1]; n > 0 {
		l.Log.Info("stale UDP entries of connection tracking removed", "entries", n)
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

// led is the plan that the rules lead by, where that is not the planner's, and takes note of what changed in it; else nil.
// An entry that either plan agrees with is not stale: one that leads straight to an endpoint, as another mode wrote it,
// serves its client as well.
func (l *Loop) led() *plan.Plan {
	leader, ok := l.ruleset.(backend.Leader)
	if !ok {
		return nil
	}
	p, changes := leader.Leads()
	l.history.Note(p.Node, changes)
	return p
}
