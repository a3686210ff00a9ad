package relay

import (
	"context"
	"net"

	"sluice/internal/model"
	"sluice/internal/relay/tcp"
)

// open makes e's listener.
func (s *Server) open(t Target, e *entry) error {
	var err error
	switch t.Port.Protocol {
	case model.TCP:
		e.listener, err = s.openTCP(t, e)
	default:
		return unsupported(t)
	}
	if err != nil {
		return &BindError{t.Key, t.Listen, reason(err)}
	}
	return nil
}

// tcpListener is a listener whose Target is a tcp.Service.
type tcpListener struct {
	*tcp.Listener
	entry *entry
}

func (l tcpListener) change(t Target) { l.Change(l.entry.service(t)) }

func (e *entry) service(t Target) tcp.Service {
	return tcp.Service{Name: e.name, Picker: e.picker, ProxyProtocol: t.ProxyProtocol, Redirected: !t.Direct}
}

func (s *Server) openTCP(t Target, e *entry) (listener, error) {
	socket := s.inherited.tcp(t)
	if socket == nil {
		var err error
		if socket, err = s.listenTCP(t); err != nil {
			return nil, err
		}
	}
	return tcpListener{s.tcp.Serve(socket, e.service(t)), e}, nil
}

func (s *Server) listenTCP(t Target) (socket *net.TCPListener, err error) {
	c := net.ListenConfig{KeepAlive: -1} // the relay's own choice comes with each connection
	// Multipath TCP has neither splice(2) in all kernels nor the original destination.
	c.SetMultipathTCP(false)
	err = s.config.In(func() error {
		l, err := c.Listen(context.Background(), network(t), t.Listen.String())
		if err == nil {
			socket = l.(*net.TCPListener)
		}
		return err
	})
	return socket, err
}

// network is the name of t's protocol and family for package net. With "tcp6" and "udp6" it sets IPV6_V6ONLY, so that
// each family has its own socket at a port.
func network(t Target) string {
	protocol := map[model.Protocol]string{model.TCP: "tcp", model.UDP: "udp"}[t.Port.Protocol]
	if t.Listen.Addr().Is4() {
		return protocol + "4"
	}
	return protocol + "6"
}
