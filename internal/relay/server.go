package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay/count"
	"sluice/internal/relay/tcp"
	"sluice/internal/relay/udp"
)

// Server holds the listeners of all Targets. It is safe for concurrent use; changes wait for each other.
type Server struct {
	config  Config
	total   totals
	tcp     *tcp.Relay
	udp     *udp.Engine
	tracked *tracked

	mu        sync.Mutex
	targets   map[Key]*entry
	lent      map[Key]*entry                 // whose sockets another process has
	ports     map[plan.PortID]*count.Counter // of those that have a Target
	inherited inherited
	stopped   bool
}

// New makes a Server without Targets. [Server.Stop] ends it.
func New(c Config) (*Server, error) {
	if err := c.defaults(); err != nil {
		return nil, err
	}
	s := &Server{config: c, total: newTotals(), targets: map[Key]*entry{}, lent: map[Key]*entry{}, ports: map[plan.PortID]*count.Counter{}, inherited: inherit(c.Inherited)}
	s.tracked = &tracked{in: c.In, log: c.Log}
	s.tcp = tcp.New(tcp.Config{
		Log: c.Log, In: c.In, Connections: c.Connections, Pipes: c.pipes,
		DialTimeout: c.DialTimeout, DialTotal: c.DialTotal, Source: s.tracked.source(model.TCP), Total: s.total.tcp,
	})
	s.udp = udp.New(udp.Config{In: c.In, Sessions: c.Sessions, Idle: c.UDPIdle, StreamIdle: c.UDPIdle, Source: s.tracked.source(model.UDP), Total: s.total.udp})
	return s, nil
}

// Put adds a Target or changes it. The error is a *[BindError], and the Target then is as it was before; or
// [ErrStopped].
func (s *Server) Put(t Target) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	e := s.targets[t.Key]
	if e != nil && e.listen == t.Listen {
		e.change(t)
		return nil
	}
	next := newEntry(t, e)
	next.count = s.counter(t.Port)
	if err := s.open(t, next); err != nil {
		s.forget(t.Port)
		return err
	}
	if e != nil {
		e.stop()
		next.cuts = e.cuts
	}
	next.change(t)
	s.targets[t.Key] = next
	return nil
}

// Remove ends the listener of a Target whose Service is gone. What is being relayed goes on as Config.Drain says.
func (s *Server) Remove(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.take(k); e != nil {
		e.stop()
		s.drain(e)
	}
}

// Close ends the listener of a Target whose Service stays, and is served elsewhere or in another way. Connections that are
// being relayed go on until they end.
func (s *Server) Close(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.take(k); e != nil {
		e.stop()
	}
}

// DropInherited closes inherited sockets that no Target has taken. It is to be called after the first ones: until then,
// clients wait at sockets that nobody accepts from.
func (s *Server) DropInherited() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inherited.close()
}

// take takes a Target out, which is nobody's then; nil if there is none.
func (s *Server) take(k Key) *entry {
	e := s.targets[k]
	if e != nil {
		delete(s.targets, k)
		s.forget(k.Port)
	}
	return e
}

// drain ends in due time what came by a Target that is gone.
func (s *Server) drain(e *entry) {
	if len(e.cuts) == 0 || s.config.Drain == 0 {
		return
	}
	time.AfterFunc(s.config.Drain, func() {
		n := 0
		for _, cut := range e.cuts {
			n += cut()
		}
		if n > 0 {
			s.config.Log.Info("connections were cut off: their Service is gone", "service", e.name,
				"connections", n, "after", s.config.Drain)
		}
	})
}

// Stop closes all listeners, and waits until what is being relayed has ended. When ctx is done first, it cuts off the
// rest and returns ctx's error. The Server takes no Targets from then on.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.halt()
	s.inherited.close()
	s.mu.Unlock()
	defer s.tracked.Close()
	defer s.tcp.Close()
	return errors.Join(s.udp.Stop(ctx), s.tcp.Wait(ctx))
}

// halt ends all listeners.
func (s *Server) halt() {
	s.stopped = true
	for _, all := range []map[Key]*entry{s.targets, s.lent} {
		for _, e := range all {
			e.listener.Stop()
		}
		clear(all)
	}
	clear(s.ports)
}
