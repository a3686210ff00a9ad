package reconcile

import (
	"maps"
	"sync"
	"time"

	"sluice/internal/backend"
	"sluice/internal/plan"
)

// State is how far a Service port is in the kernel.
type State string

// The states.
const (
	Pending State = "pending" // planned, not written yet
	Done    State = "done"
	Failed  State = "error" // the last write failed, or this port was refused
)

// Status is the State of one Service port.
type Status struct {
	State State
	Since time.Time
	Error string // the kernel's words, or those of the mode, for Failed
}

// Summary is what the Applies were so far.
type Summary struct {
	LastApply time.Time     // when the last one ended; zero: there was none
	Took      time.Duration // the last one
	Applies   int           // all of them
	Failures  int           // the last ones that failed, in a row
	Written   int           // objects that were added, changed or removed
	Restored  int           // objects of ours that somebody else had changed
	// Ports is the number of Service ports in each State. One that is about to go counts until it has gone.
	Ports map[State]int
}

// status is what the loop has achieved. What an Apply adds to it costs what is not Done, never all ports.
type status struct {
	mu     sync.Mutex // guards all following fields
	period time.Duration
	ports  map[plan.PortID]Status
	// open are the ports that are not Done. True: it is no longer planned but may still be in the kernel.
	open   map[plan.PortID]bool
	family [2]FamilyHealth // but for Healthy
	// What changed since the last Apply that succeeded.
	pendingServices, pendingSlices int
	summary                        Summary
}

// outcome is how an Apply ended.
type outcome struct {
	backend.Result
	held       map[plan.PortID]bool
	failed     [2]bool // by family
	err        error
	start, end time.Time
}

// Status tells the state of every Service port, those included that are about to go.
func (l *Loop) Status() map[plan.PortID]Status {
	l.status.mu.Lock()
	defer l.status.mu.Unlock()
	return maps.Clone(l.status.ports)
}

// Summary tells how the Applies went. It costs the number of Service ports that are not Done.
func (l *Loop) Summary() Summary {
	s := &l.status
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.summary
	sum.Ports = map[State]int{Done: len(s.ports) - len(s.open)}
	for id := range s.open {
		sum.Ports[s.ports[id].State]++
	}
	return sum
}

func (s *status) init(period time.Duration) {
	s.period, s.ports, s.open = period, map[plan.PortID]Status{}, map[plan.PortID]bool{}
}

// syncPeriod is the sync period as it is now.
func (s *status) syncPeriod() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.period
}

func (s *status) setPeriod(period time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.period = period
}

func (s *status) pending(changes plan.Changes, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	families := [2]bool{changes.Node, changes.Node}
	for _, c := range changes.Ports {
		families[c.ID.Family] = true
		s.reopen(c.ID, c.New == nil, now)
	}
	s.asked(families, now)
}

// reopen notes that a port is not Done. What is not since longer ago stays so: Since tells for how long the port has not
// been as it should be.
func (s *status) reopen(id plan.PortID, gone bool, now time.Time) {
	if _, open := s.open[id]; !open {
		s.ports[id] = Status{State: Pending, Since: now}
	}
	s.open[id] = gone
}

// applied is told how an Apply ended, and which ports the plan has.
func (s *status) applied(o outcome, planned map[plan.PortID]*plan.Port) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(o)
	for id := range o.Refused {
		s.reopen(id, planned[id] == nil, o.end)
	}
	var words string
	if o.err != nil {
		words = o.err.Error()
	}
	// What stays open moves to a new map: to walk one that once held many costs what it held.
	was := s.open
	s.open = map[plan.PortID]bool{}
	for id, gone := range was {
		st := s.ports[id]
		switch refused := o.Refused[id]; {
		case refused != nil:
			s.ports[id], s.open[id] = Status{Failed, st.Since, refused.Error()}, gone
		case o.held[id]:
			s.open[id] = gone
		case o.failed[id.Family]:
			s.ports[id], s.open[id] = Status{Failed, st.Since, words}, gone
		case gone:
			delete(s.ports, id)
		default:
			s.ports[id] = Status{State: Done, Since: o.end}
		}
	}
}

func (s *status) count(o outcome) {
	sum := &s.summary
	sum.LastApply, sum.Took = o.end, o.end.Sub(o.start)
	sum.Applies++
	sum.Written += o.Written
	sum.Restored += len(o.Restored)
	if sum.Failures++; o.err == nil {
		sum.Failures = 0
	}
	s.settled(o.failed, o.end)
}
