package localhost

import (
	"fmt"

	"sluice/internal/plan"
	"sluice/internal/relay"
)

// reasonFailed is the reason of the Event of a node port that is not listened at.
const reasonFailed = "FailedToListenAtLocalhost"

// Numbers are those of one family.
type Numbers struct {
	Listeners int    // that there are
	Failures  uint64 // attempts to make one that failed
}

// Numbers are those of each family; nil: it is not served.
func (s *Server) Numbers() (n [2]*Numbers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f, serves := range s.serves {
		if serves {
			n[f] = &Numbers{Failures: s.failures[f]}
		}
	}
	for id := range s.wanted {
		if s.failed[id] == "" {
			n[id.Family].Listeners++
		}
	}
	return n
}

func (s *Server) retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.failed {
		s.put(s.wanted[id])
	}
}

// put has the proxy listen for t, and tells of a failure that is new, and of its end.
func (s *Server) put(t relay.Target) {
	err := s.open()
	if err == nil {
		err = s.proxy.Put(t)
	}
	id, known := t.Port, s.failed[t.Port]
	switch {
	case err == nil && known != "":
		delete(s.failed, id)
		s.config.Log.Info("node port answers at the loopback address now", "service", id.String(), "address", t.Listen, "protocol", id.Protocol.String())
	case err != nil:
		s.failures[id.Family]++
		s.failed[id] = err.Error()
		s.tell(id, t, known, err)
	}
}

func (s *Server) open() error {
	if s.proxy != nil {
		return nil
	}
	proxy, err := s.config.Open()
	if err == nil {
		s.proxy = proxy
	}
	return err
}

func (s *Server) tell(id plan.PortID, t relay.Target, known string, err error) {
	if err.Error() == known {
		return
	}
	s.config.Log.Error("node port does not answer at the loopback address", "service", id.String(), "address", t.Listen,
		"protocol", id.Protocol.String(), "error", err)
	s.config.Tell(id.Service, reasonFailed, fmt.Sprintf("node port %d does not answer at %s of the node: %v", t.Listen.Port(), t.Listen.Addr(), err))
}
