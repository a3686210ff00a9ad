package reconcile

import (
	"context"
	"log/slog"
	"maps"
	"sync"
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
	// MinSyncPeriod is the longest pause between an Apply and the one that writes what changed meanwhile. A quick Apply
	// is followed by a shorter one; see pauseShare.
	MinSyncPeriod time.Duration

	Backend backend.Backend
	Planner *plan.Planner
	// After is the Loop that worked with Planner before, and has ended; nil: none did. If it had its first Input, rules
	// are written at once.
	After *Loop
	// Told are problems by topic, as in an Event, that were told before there was a Loop; After knows better.
	Told map[any][]string
	// Sweep removes the UDP entries of connection tracking that stale gives a reason for, and tells how many of each
	// family there were. Nil: none are removed.
	Sweep func(ctx context.Context, stale func(flows.Flow) flows.Reason) (removed [2]int, err error)
	// Planned, if set, is called with every change of the plan, before the kernel is written.
	Planned func(*plan.Plan, plan.Changes)
	// Stands, if set, is called once, when an Apply has succeeded for the first time: then the rules stand.
	Stands func()
	// Refused, if set, is called for each Service port that the kernel, or the mode, refuses, once until it is taken.
	Refused func(plan.PortID, error)
	// Observer is told what the loop does; it may be nil.
	Observer Observer
	Log      *slog.Logger
}

// Live is the part of the configuration that may change while the loop runs. All of it replaces what was before.
type Live struct {
	Plan                      plan.Config
	SyncPeriod, MinSyncPeriod time.Duration
}

// Event is news for the loop.
type Event struct {
	// Input is what the source says, nil if nothing new. The first one must hold all that there is: no rule is
	// written before it.
	Input *Input
	// Host is set when the machine's addresses are others than before.
	Host *plan.Host
	// Config is set when the configuration is another than before.
	Config *Live
	// Problems has topics, an object or a file say, and all that is wrong with each as it is now; nothing any more, if
	// the list is empty. A topic that is absent is as it was.
	Problems map[any][]string
}

// Input is a change of the objects.
type Input struct {
	Delta model.Delta
	// Triggers are why endpoints changed, if that is known.
	Triggers []Trigger
}

// Loop keeps one kernel as one plan says.
type Loop struct {
	Config
	status status
	// disturbed tells Run that somebody may have changed what is ours. Once is enough for any number of changes.
	disturbed chan struct{}

	// Only Run's goroutine has the following.
	notices  notices
	ruleset  backend.Ruleset
	history  flows.History
	pace     pace
	refusals refusals
	triggers triggers
	stands   bool
}

// New makes a Loop, which does nothing until it is run.
func New(c Config) *Loop {
	l := &Loop{
		Config: c, notices: notices{log: c.Log, topics: maps.Clone(c.Told)}, disturbed: make(chan struct{}, 1),
		pace: pace{min: c.MinSyncPeriod, period: c.SyncPeriod}, refusals: newRefusals(c.SyncPeriod),
		triggers: triggers{since: time.Now()},
	}
	l.status.init(c.SyncPeriod)
	l.history.NoteStart()
	if c.After != nil {
		l.goOn(c.After)
		l.After = nil // which would keep the ruleset of each Loop before
	}
	return l
}

// Run works until ctx ends. An Apply that is under way by then is finished first.
func (l *Loop) Run(ctx context.Context, events <-chan Event) {
	var watching sync.WaitGroup
	watching.Go(func() { l.watch(ctx) })
	defer watching.Wait()
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
		case <-l.disturbed:
			l.pace.disturbed = true
		case <-due:
			l.gather(events)
			l.sync(context.WithoutCancel(ctx))
		}
	}
}

// gatherLimit is how many Events one write waits for: where they come as fast as they are absorbed there is no end.
const gatherLimit = 1000

// gather takes what has come in meanwhile, so that one write serves it too.
func (l *Loop) gather(events <-chan Event) {
	for range gatherLimit {
		select {
		case e := <-events:
			l.absorb(e)
		case <-l.disturbed:
			l.pace.disturbed = true
		default:
			return
		}
	}
}

func (l *Loop) absorb(e Event) {
	for topic, problems := range e.Problems {
		l.notices.set(topic, problems)
	}
	if e.Config != nil {
		l.configure(*e.Config)
	}
	if e.Host != nil {
		before := l.Planner.Plan().Node
		l.planned(before, l.Planner.SetHost(*e.Host))
	}
	if e.Input != nil {
		l.input(e.Input)
	}
}

func (l *Loop) configure(c Live) {
	l.pace.configure(c.MinSyncPeriod, c.SyncPeriod)
	l.refusals.period = c.SyncPeriod
	l.status.setPeriod(c.SyncPeriod)
	before := l.Planner.Plan().Node
	l.planned(before, l.Planner.SetConfig(c.Plan))
}

func (l *Loop) input(in *Input) {
	services, slices := len(in.Delta.Services), len(in.Delta.Slices)
	l.status.absorbed(services, slices)
	if l.Observer != nil {
		l.Observer.Absorbed(services, slices)
	}
	l.pace.opened = true
	before := l.Planner.Plan().Node
	l.planned(before, l.Planner.Update(in.Delta))
	switch {
	case l.pace.changed || l.pace.failures > 0 || l.ruleset == nil:
		l.triggers.add(in.Triggers)
	default:
		l.status.nothingToDo() // nobody asks for an Apply, and what the triggers were about is none of the kernel's business
	}
}

// planned passes a change of the plan on to all that follow it.
func (l *Loop) planned(before plan.Node, changes plan.Changes) {
	if changes.Empty() {
		return
	}
	l.follow(before, changes)
	if l.Planned != nil {
		l.Planned(l.Planner.Plan(), changes)
	}
}

// follow does what a change of the plan asks for here.
func (l *Loop) follow(before plan.Node, changes plan.Changes) {
	p := l.Planner.Plan()
	now := time.Now()
	l.noticeProblems(p, changes)
	l.history.Note(before, changes)
	l.status.pending(changes, now)
	for _, c := range changes.Ports {
		l.refusals.change(c, now)
	}
	l.pace.changed = true
	if l.ruleset != nil {
		l.ruleset.Update(p, changes)
	}
}
