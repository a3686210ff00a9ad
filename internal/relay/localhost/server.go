package localhost

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

// retryEvery is the wait before a node port that could not be listened at is tried again.
const retryEvery = 10 * time.Second

// Proxy is what a Server has do the work, see [relay.Server].
type Proxy interface {
	Put(t relay.Target) error
	Remove(k relay.Key)
	Close(k relay.Key)
}

// Config is what a Server needs.
type Config struct {
	// Open is called when there is something to listen at, and again after it has failed.
	Open func() (Proxy, error)
	Log  *slog.Logger
	// Tell hears of a Service whose node port cannot be listened at what is worth an Event on it: once, until the reason
	// is another. It neither waits nor calls the Server.
	Tell func(service model.Name, reason, note string)
}

// Server keeps the proxy listening at the node ports of a plan. It is safe for concurrent use.
type Server struct {
	config Config

	mu    sync.Mutex // guards all following fields
	proxy Proxy      // nil: not opened yet
	// serves are the families whose loopback address is served, and ends those of them that rules are about to serve.
	serves, ends [2]bool
	// wanted is what the plan has, and failed why some of it is not listened at.
	wanted   map[plan.PortID]relay.Target
	failed   map[plan.PortID]string
	failures [2]uint64
}

// New makes a Server that has nothing to do until the first Update.
func New(c Config) *Server {
	return &Server{config: c, wanted: map[plan.PortID]relay.Target{}, failed: map[plan.PortID]string{}}
}

// Run tries again what could not be listened at, until ctx ends. What is listened at then is the proxy's to end.
func (s *Server) Run(ctx context.Context) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.retry()
		case <-ctx.Done():
			return
		}
	}
}

// Update follows a change of the plan.
func (s *Server) Update(p *plan.Plan, changes plan.Changes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.turn(p.Node.NodePorts)
	if s.serves == [2]bool{} {
		return
	}
	ports := make(map[plan.PortID]*plan.Port, len(changes.Ports))
	for _, c := range changes.Ports {
		ports[c.ID] = c.New
	}
	if all {
		maps.Copy(ports, p.Ports)
	}
	s.follow(ports)
}

// follow does as ports are planned now. Listeners end before others begin, for two Services may change places.
func (s *Server) follow(ports map[plan.PortID]*plan.Port) {
	var next []relay.Target
	for id, port := range ports {
		t, ok := s.target(port)
		if before := s.wanted[id]; !ok || before.Key != t.Key || before.Listen != t.Listen {
			s.leave(id, port == nil)
		}
		if ok {
			next = append(next, t)
		}
	}
	for _, t := range next {
		s.wanted[t.Port] = t
		s.put(t)
	}
}

// target is what is to be done for a port, nil if that is gone; false: nothing.
func (s *Server) target(p *plan.Port) (t relay.Target, ok bool) {
	if p == nil || !s.serves[p.ID.Family] {
		return t, false
	}
	return target(p)
}

// turn notes which families are to be served, and reports whether one is that was not.
func (s *Server) turn(now [2]plan.NodePorts) (more bool) {
	for f := range now {
		more = more || now[f].Proxied && !s.serves[f]
		s.serves[f] = s.serves[f] || now[f].Proxied
		s.ends[f] = s.serves[f] && !now[f].Proxied
	}
	return more
}

// Settled ends what rules serve: they are as the plan of the last Update has them. Connections go on.
func (s *Server) Settled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == [2]bool{} {
		return
	}
	for id := range s.wanted {
		if s.ends[id.Family] {
			s.leave(id, false)
		}
	}
	for f, ends := range s.ends {
		s.serves[f] = s.serves[f] && !ends
	}
	s.ends = [2]bool{}
}

// leave ends a listener, if there is one; gone: the Service port is.
func (s *Server) leave(id plan.PortID, gone bool) {
	t, ok := s.wanted[id]
	if !ok {
		return
	}
	switch {
	case s.failed[id] != "":
	case gone:
		s.proxy.Remove(t.Key)
	default:
		s.proxy.Close(t.Key)
	}
	delete(s.wanted, id)
	delete(s.failed, id)
}
