package reconcile

import "time"

// Health is whether changes reach the kernel.
type Health struct {
	Family [2]FamilyHealth
}

// FamilyHealth is that of one address family.
type FamilyHealth struct {
	// Updated is when an Apply of this family last succeeded; zero: none has.
	Updated time.Time
	// Asked is when a change of this family last came in; zero: none has.
	Asked time.Time
	// Queued is since when something of this family is planned, or wrong, that no Apply has settled; zero: nothing is.
	Queued time.Time
	// Healthy is unset if that has been so for two sync periods. A Service port that the kernel refuses does not count:
	// all others are served, and a restart of this process would not help it.
	Healthy bool
}

// Health tells it by family. kube-proxy has the same rule.
func (l *Loop) Health() (h Health) {
	now := time.Now()
	s := &l.status
	s.mu.Lock()
	defer s.mu.Unlock()
	for f, family := range s.family {
		family.Healthy = family.Queued.IsZero() || now.Sub(family.Queued) < 2*s.period
		h.Family[f] = family
	}
	return h
}

// Healthy reports whether both families are.
func (l *Loop) Healthy() bool {
	h := l.Health()
	return h.Family[0].Healthy && h.Family[1].Healthy
}

// Pending is how many Services and EndpointSlices changed that the kernel has not followed yet, one that changed twice
// counted twice.
func (l *Loop) Pending() (services, slices int) {
	s := &l.status
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pendingServices, s.pendingSlices
}

// absorbed is told of changed objects.
func (s *status) absorbed(services, slices int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pendingServices += services
	s.pendingSlices += slices
}

// asked is told that something of these families is to be written.
func (s *status) asked(families [2]bool, now time.Time) {
	for f, concerned := range families {
		if !concerned {
			continue
		}
		s.family[f].Asked = now
		s.family[f].queue(now)
	}
}

// settled is told of an Apply by which families failed.
func (s *status) settled(failed [2]bool, end time.Time) {
	for f := range s.family {
		if failed[f] {
			s.family[f].queue(end)
		} else {
			s.family[f].Updated, s.family[f].Queued = end, time.Time{}
		}
	}
	if failed == [2]bool{} {
		s.pendingServices, s.pendingSlices = 0, 0
	}
}

// queue keeps the oldest time.
func (h *FamilyHealth) queue(now time.Time) {
	if h.Queued.IsZero() {
		h.Queued = now
	}
}

// nothingToDo is told that what came in asks for no Apply.
func (s *status) nothingToDo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pendingServices, s.pendingSlices = 0, 0
}
