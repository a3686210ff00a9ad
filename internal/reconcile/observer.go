package reconcile

import (
	"time"

	"sluice/internal/backend"
	"sluice/internal/model"
)

// Observer is told what the loop does. The calls come one after another, from the loop's goroutine, and hold it up.
type Observer interface {
	// Absorbed is told how many Services and EndpointSlices of an Input changed.
	Absorbed(services, slices int)
	// Applied is told how each Apply went.
	Applied(Applied)
	// Swept is told of each sweep of connection tracking: how many entries of each family it removed.
	Swept(took time.Duration, removed [2]int, err error)
}

// Applied is how an Apply went.
type Applied struct {
	Start, End time.Time
	Err        error
	Failed     [2]bool // by family
	// Full is set if the kernel was to be read back whole.
	Full bool
	// Written and Restored are numbers of objects, as in [backend.Result].
	Written, Restored int
	// Refused is the number of Service ports that the kernel does not take, whether they were tried again or not.
	Refused int
	Phases  backend.Phases
	// Programmed are the triggers that this Apply settled.
	Programmed []Programmed
}

// Trigger is why endpoints of a Service changed, and when: a pod that became ready, say.
type Trigger struct {
	Service model.Name
	// Family is that of the EndpointSlice that told of it.
	Family model.Family
	At     time.Time
}

// Programmed is a Trigger that the kernel does as.
type Programmed struct {
	Family model.Family
	Took   time.Duration // from the trigger to the end of the Apply
}

// maxTriggers bounds the triggers that are kept while the kernel takes nothing. Those beyond are not measured.
const maxTriggers = 10_000

// triggers are those whose changes are not in the kernel yet.
type triggers struct {
	since time.Time // older ones were some other process's work
	open  []Trigger
}

func (t *triggers) add(more []Trigger) {
	for _, trigger := range more {
		if trigger.At.After(t.since) && len(t.open) < maxTriggers {
			t.open = append(t.open, trigger)
		}
	}
}

// part is what of a Service is in the kernel, or is not: one family of it.
type part struct {
	service model.Name
	family  model.Family
}

// settle takes out those of families whose Apply succeeded, but for parts that the kernel refuses. Of each of these the
// first trigger waits: one that changes for as long as it is refused would else use up the room of all others.
func (t *triggers) settle(end time.Time, failed [2]bool, refused map[part]bool) (done []Programmed) {
	if len(t.open) == 0 {
		return nil
	}
	kept := t.open[:0]
	waits := make(map[part]bool, len(refused))
	for _, trigger := range t.open {
		of := part{trigger.Service, trigger.Family}
		switch {
		case failed[trigger.Family]:
			kept = append(kept, trigger)
		case refused[of] && !waits[of]:
			kept = append(kept, trigger)
			waits[of] = true
		case !refused[of]:
			done = append(done, Programmed{Family: trigger.Family, Took: end.Sub(trigger.At)})
		}
	}
	if t.open = kept; len(kept) == 0 {
		t.open = nil // it may have been large
	}
	return done
}

// observe tells the Observer of an Apply.
func (l *Loop) observe(o outcome, full bool) {
	programmed := l.triggers.settle(o.end, o.failed, l.refusals.parts())
	if l.Observer == nil {
		return
	}
	l.Observer.Applied(Applied{
		Start: o.start, End: o.end, Err: o.err, Failed: o.failed, Full: full,
		Written: o.Written, Restored: len(o.Restored), Refused: len(l.refusals.ports),
		Phases: o.Phases, Programmed: programmed,
	})
}
