package health

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
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
	healthy func() bool
	log     *slog.Logger

	mu        sync.Mutex // guards all following fields
	checks    map[plan.PortID]plan.HealthCheck
	node      plan.Node
	listeners map[netip.AddrPort]*listener
	closed    bool
}

// listener is one address that the plan wants listened at.
type listener struct {
	answer answer
	server *http.Server // nil: it could not be listened at
	socket net.Listener
	failed string // why
}

// New makes a Server. healthy tells whether the proxy itself does its work.
func New(healthy func() bool, log *slog.Logger) *Server {
	return &Server{
		healthy: healthy, log: log,
		checks: map[plan.PortID]plan.HealthCheck{}, listeners: map[netip.AddrPort]*listener{},
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
	wanted := map[netip.AddrPort]answer{}
	for id, check := range s.checks {
		for _, addr := range addresses(s.node.NodePorts[id.Family], id.Family) {
			wanted[netip.AddrPortFrom(addr, check.Port)] = answer{id.Service, check.Ready}
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

// addresses are those at which one family's node ports are served: the unspecified one stands for all.
func addresses(n plan.NodePorts, f model.Family) []netip.Addr {
	switch {
	case n.All:
		return []netip.Addr{f.Unspecified()}
	case n.Loopback:
		return append([]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, n.Addresses...)
	}
	return n.Addresses
}

// listen opens what is not open yet. A failure concerns that Service alone, and is told when it is another than before.
func (s *Server) listen() {
	for at, l := range s.listeners {
		if l.server != nil || s.closed {
			continue
		}
		err := s.open(at, l)
		service := l.answer.service.String()
		switch {
		case err != nil && err.Error() != l.failed:
			s.log.Error("health check node port does not answer", "service", service, "address", at, "error", err)
			l.failed = err.Error()
		case err == nil && l.failed != "":
			s.log.Info("health check node port answers now", "service", service, "address", at)
			l.failed = ""
		}
	}
}

func (s *Server) open(at netip.AddrPort, l *listener) error {
	network := "tcp4"
	if at.Addr().Is6() {
		network = "tcp6"
	}
	socket, err := net.Listen(network, at.String())
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.handler(l), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	l.server, l.socket = server, socket
	go func() {
		if err := server.Serve(socket); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("health check node port", "address", at, "error", err)
		}
	}()
	return nil
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

func (l *listener) close() {
	if l.server == nil {
		return
	}
	_ = l.server.Close() // what it could report is of no use any more
	// A server that has not begun to serve does not know of its socket yet, and the port may be wanted at once.
	_ = l.socket.Close()
}
