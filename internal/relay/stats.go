package relay

import (
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay/count"
	"sluice/internal/relay/udp"
)

// Stats are the numbers of all Targets that are listened at, and of all that ever were together.
type Stats struct {
	// Total is of everything, TCP and UDP are its parts.
	Total, TCP, UDP count.Counts
	Targets         map[Key]count.Counts
	// Ports are the numbers of Service ports since they had no Target: what a Target had counted stays when it goes,
	// as long as there is another one of the same Service port.
	Ports     map[plan.PortID]count.Counts
	Datagrams udp.Stats // of all Targets of UDP that ever were
	// Connections and Sessions are how many connections of TCP, and sessions of UDP, there may be.
	Connections, Sessions int
}

// Stats are the numbers now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{
		Total: s.total.all.Counts(), TCP: s.total.tcp.Counts(), UDP: s.total.udp.Counts(),
		Targets: make(map[Key]count.Counts, len(s.targets)), Ports: make(map[plan.PortID]count.Counts, len(s.ports)),
		Datagrams: s.udp.Stats(), Connections: s.config.Connections, Sessions: s.config.Sessions,
	}
	for k, e := range s.targets {
		stats.Targets[k] = e.listener.Counts()
	}
	for id, c := range s.ports {
		stats.Ports[id] = c.Counts()
	}
	return stats
}

// totals are the parents of all counters.
type totals struct{ all, tcp, udp *count.Counter }

func newTotals() totals {
	all := count.New(nil)
	return totals{all, count.New(all), count.New(all)}
}

// counter is the parent of the counters of a Service port.
func (s *Server) counter(id plan.PortID) *count.Counter {
	if c := s.ports[id]; c != nil {
		return c
	}
	total := s.total.tcp
	if id.Protocol == model.UDP {
		total = s.total.udp
	}
	s.ports[id] = count.New(total)
	return s.ports[id]
}

// forget is for a Service port that has a Target less.
func (s *Server) forget(id plan.PortID) {
	for _, list := range []plan.List{plan.ListCluster, plan.ListLocal} {
		for _, direct := range []bool{false, true} {
			if s.targets[Key{id, list, direct}] != nil {
				return
			}
		}
	}
	delete(s.ports, id)
}
