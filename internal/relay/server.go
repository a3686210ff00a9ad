package relay

import (
	"context"
	"sync"

	"sluice/internal/model"
	"sluice/internal/relay/count"
)

// Server holds the listeners of all Targets. It is safe for concurrent use; changes wait for each other.
type Server struct {
	config Config
	total  *count.Counter

	mu      sync.Mutex
	targets map[Key]Target
	stopped bool
}

// Stats are the numbers of all Targets that are listened at, and of all that ever were together.
type Stats struct {
	Total   count.Counts
	Targets map[Key]count.Counts
}

// New makes a Server without Targets.
func New(c Config) *Server {
	return &Server{config: c, total: count.New(nil), targets: map[Key]Target{}}
}

// Put adds a Target or changes it. The error is a *[BindError], and the Target then is as it was before; or
// [ErrStopped].
func (s *Server) Put(t Target) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(t)
}

// Remove ends the listener of a Target. What is being relayed goes on as Config.Drain says.
func (s *Server) Remove(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.targets, k)
}

// Set makes targets all that there are. What fails is told of by Key, as [Server.Put] does, and does not hold up the
// others.
func (s *Server) Set(targets []Target) map[Key]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := map[Key]error{}
	clear(s.targets)
	for _, t := range targets {
		if err := s.put(t); err != nil {
			failed[t.Key] = err
		}
	}
	return failed
}

func (s *Server) put(t Target) error {
	if s.stopped {
		return ErrStopped
	}
	if t.Port.Protocol == model.SCTP {
		return unsupported(t)
	}
	s.targets[t.Key] = t
	return nil
}

// Stats are the numbers now.
func (s *Server) Stats() Stats {
	return Stats{Total: s.total.Counts(), Targets: map[Key]count.Counts{}}
}

// Export gives away the listening sockets, for the next process's Config.Inherited, and accepts nothing by them any
// more: what waits in them is for that process. What is being relayed goes on; call [Server.Stop] to await its end.
func (s *Server) Export() ([]Socket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return nil, nil
}

// Stop closes all listeners, and waits until what is being relayed has ended. When ctx is done first, it cuts off the
// rest and returns ctx's error. The Server takes no Targets from then on.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return ctx.Err()
}
