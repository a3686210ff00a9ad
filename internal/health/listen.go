package health

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"sluice/internal/httpd"
	"sluice/internal/model"
)

// reasonFailed is the reason of the Event that kube-proxy makes of a port that it cannot listen at.
const reasonFailed = "FailedToStartServiceHealthcheck"

// place is where a Service is to be asked for. Two Services with one port are two places, of which the kernel lets the
// first be listened at.
type place struct {
	service model.Name
	family  model.Family
	at      netip.AddrPort // its address is not valid if the node has none for node ports
}

func (p place) compare(o place) int {
	return cmp.Or(p.service.Compare(o.service), cmp.Compare(p.family, o.family), p.at.Compare(o.at))
}

// listener is one place that the plan wants listened at.
type listener struct {
	answer answer
	server *http.Server // nil: it is not listened at
	socket net.Listener
	ended  <-chan error
	failed string // why it is not
}

// listen opens what is not open. A failure concerns that place alone, and is told when it is another than before.
func (s *Server) listen() {
	if s.closed {
		return
	}
	for _, p := range slices.SortedFunc(maps.Keys(s.listeners), place.compare) {
		l := s.listeners[p]
		err := l.fault()
		if err == nil && l.server == nil {
			err = s.open(p, l)
		}
		s.report(p, l, err)
	}
	s.tellFailing()
}

// tellFailing tells of all failures, if they are others than before.
func (s *Server) tellFailing() {
	var texts []string
	for _, p := range slices.SortedFunc(maps.Keys(s.listeners), place.compare) {
		if l := s.listeners[p]; l.failed != "" {
			texts = append(texts, fmt.Sprintf("Service %s: health check node port %d does not answer: %s", p.service, p.at.Port(), l.failed))
		}
	}
	if s.Failing != nil && !slices.Equal(texts, s.failing) {
		s.failing = texts
		s.Failing(texts)
	}
}

// report tells of a failure that is new, and of its end.
func (s *Server) report(p place, l *listener, err error) {
	switch {
	case err != nil && err.Error() != l.failed:
		l.failed = err.Error()
		s.log.Error("health check node port does not answer", "service", p.service.String(), "port", p.at.Port(), "error", err)
		if s.Tell != nil {
			s.Tell(p.service, reasonFailed, fmt.Sprintf("node %s failed to start healthcheck %q on port %d: %v",
				s.node.Name, p.service.String(), p.at.Port(), err))
		}
	case err == nil && l.failed != "":
		l.failed = ""
		s.log.Info("health check node port answers now", "service", p.service.String(), "address", p.at)
	}
}

func (s *Server) open(p place, l *listener) error {
	if !p.at.Addr().IsValid() {
		return fmt.Errorf("nodePortAddresses has no %s address of this node", p.family)
	}
	network := [...]string{model.IPv4: "tcp4", model.IPv6: "tcp6"}[p.family]
	socket, err := net.Listen(network, p.at.String())
	if err != nil {
		return err
	}
	l.socket = socket
	l.server, l.ended = httpd.Serve(socket, httpd.OneAnswer(s.handler(l)), s.log)
	return nil
}

// fault is why a server ended by itself. It is closed then, for another attempt.
func (l *listener) fault() error {
	select {
	case err := <-l.ended: // nil, which blocks, if it is not open
		l.close()
		return err
	default:
		return nil
	}
}

func (l *listener) close() {
	if l.server == nil {
		return
	}
	// A server that has not begun to serve does not know of its socket yet, and the port may be wanted at once. What
	// closing could report is of no use any more.
	_ = l.socket.Close()
	_ = l.server.Close()
	for range l.ended { // until it has ended
	}
	l.server, l.ended = nil, nil
}
