package backend

import "time"

// Phase is a part of an Apply.
type Phase uint8

// The phases.
const (
	Read    Phase = iota // what the kernel has
	Compare              // it with what it should have, and encode the difference
	Write                // the difference
	phases
)

// AllPhases lists them, in the order in which an Apply goes through them.
var AllPhases = [phases]Phase{Read, Compare, Write}

// String is the phase in metrics.
func (p Phase) String() string { return [...]string{"read", "compare", "write"}[p] }

// Phases is how long each of them took, zero for those that an Apply did without.
type Phases [phases]time.Duration

// Since adds the time from start to now, and returns now: the next phase's start.
func (p *Phases) Since(start time.Time, phase Phase) (now time.Time) {
	now = time.Now()
	p[phase] += now.Sub(start)
	return now
}

// Add adds those of another part of the same Apply.
func (p *Phases) Add(more Phases) {
	for phase, took := range more {
		p[phase] += took
	}
}
