package health

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// retryEvery is the wait before a port that could not be listened at is tried again.
const retryEvery = 10 * time.Second

// Server listens at the health check node ports of a plan.
type Server struct {
	// Tell, if set, hears of a Service whose port cannot be listened at what is worth an Event on it: once, until the
	// reason is another. It is set before the first Update, and neither waits nor calls the Server.
	Tell func(service model.Name, reason, note string)
	// Failing, if set, hears of all that is wrong, whenever that changes. What holds for Tell holds for it.
	Failing func(texts []string)

	healthy func() bool
	log     *slog.Logger

	mu        sync.Mutex // guards all following fields
	checks    map[plan.PortID]plan.HealthCheck
	node      plan.Node
	listeners map[place]*listener
	failing   []string // what was last told
	closed    bool
}

// New makes a Server. healthy tells whether the proxy itself does its work, as [Proxy.Healthy] does.
func New(healthy func() bool, log *slog.Logger) *Server {
	return &Server{
		healthy: healthy, log: log,
		checks: map[plan.PortID]plan.HealthCheck{}, listeners: map[place]*listener{},
	}
}

// Run tries again what could not be listened at, until ctx ends; then it closes everything.
func (s *Server) Run(ctx context.Context) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.mu.Lock()
			s.listen()
			s.mu.Unlock()
		case <-ctx.Done():
			s.close()
			return
		}
	}
}

// Update follows a change of the plan.
func (s *Server) Update(p *plan.Plan, changes plan.Changes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	touched := changes.Node
	for _, c := range changes.Ports {
		delete(s.checks, c.ID)
		if c.New != nil && c.New.HealthCheck != nil {
			s.checks[c.ID] = *c.New.HealthCheck
		}
		touched = touched || hasCheck(c.Old) || hasCheck(c.New)
	}
	s.node = p.Node
	if touched && !s.closed {
		s.settle()
		s.listen()
	}
}

func hasCheck(p *plan.Port) bool { return p != nil && p.HealthCheck != nil }

// settle closes what the plan no longer has and notes what it has anew.
func (s *Server) settle() {
	wanted := map[place]answer{}
	for id, check := range s.checks {
		for _, addr := range addresses(s.node.NodePorts[id.Family], id.Family) {
			wanted[place{id.Service, id.Family, netip.AddrPortFrom(addr, check.Port)}] = answer{id.Service, check.Ready}
		}
	}
	for at, l := range s.listeners {
		if _, ok := wanted[at]; !ok {
			l.close()
			delete(s.listeners, at)
		}
	}
	for at, a := range wanted {
		if s.listeners[at] == nil {
			s.listeners[at] = &listener{}
		}
		s.listeners[at].answer = a
	}
}

// addresses are those at which one family's node ports are served: the unspecified one stands for all, and one that
// is none says that there are none.
func addresses(n plan.NodePorts, f model.Family) []netip.Addr {
	switch {
	case n.All:
		return []netip.Addr{f.Unspecified()}
	case n.Loopback:
		return append([]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, n.Addresses...)
	case len(n.Addresses) == 0:
		return []netip.Addr{{}}
	}
	return n.Addresses
}

func (s *Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.listeners {
		l.close()
	}
	clear(s.listeners)
}
