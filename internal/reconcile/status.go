package reconcile

import (
	"maps"
	"sync"
	"time"

	"sluice/internal/plan"
)

// State is how far a Service port is in the kernel.
type State string

// The states.
const (
	Pending State = "pending" // planned, not written yet
	Done    State = "done"
	Failed  State = "error" // the last write failed
)

// Status is the State of one Service port.
type Status struct {
	State State
	Since time.Time
	Error string // the kernel's words, for Failed
}

type status struct {
	patience time.Duration

	mu    sync.Mutex // guards all following fields
	ports map[plan.PortID]Status
	// gone are ports that are no longer planned but may still be in the kernel.
	gone map[plan.PortID]bool
	// waiting is since when something is planned, or wrong, that no Apply has settled; zero: nothing is.
	waiting time.Time
}

// Status tells the state of every Service port, those included that are about to go.
func (l *Loop) Status() map[plan.PortID]Status {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	return maps.Clone(l.status.ports)
}

// Healthy reports whether changes reach the kernel: none waits for as long as two sync periods.
func (l *Loop) Healthy() bool {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	return l.status.waiting.IsZero() || time.Since(l.status.waiting) < l.status.patience
}

func (s *status) pending(changes plan.Changes, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ports == nil {
		s.ports, s.gone = map[plan.PortID]Status{}, map[plan.PortID]bool{}
	}
	if s.waiting.IsZero() {
		s.waiting = now
	}
	for _, c := range changes.Ports {
		if was := s.ports[c.ID].State; was != Pending && was != Failed {
			s.ports[c.ID] = Status{State: Pending, Since: now}
		}
		delete(s.gone, c.ID)
		if c.New == nil {
			s.gone[c.ID] = true
		}
	}
}

// applied is told how an Apply ended, and for which families it failed.
func (s *status) applied(failed [2]bool, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.waiting = time.Time{}
	} else if s.waiting.IsZero() {
		s.waiting = now
	}
	for id, st := range s.ports {
		switch {
		case failed[id.Family] && st.State != Done:
			// Since stays: it tells for how long the port has not been as it should be.
			s.ports[id] = Status{State: Failed, Since: st.Since, Error: err.Error()}
		case failed[id.Family]:
		case s.gone[id]:
			delete(s.ports, id)
			delete(s.gone, id)
		case st.State != Done:
			s.ports[id] = Status{State: Done, Since: now}
		}
	}
}
