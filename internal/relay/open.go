package relay

import (
	"context"
	"net"
	"net/netip"
	"os"
	"time"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay/count"
	"sluice/internal/relay/tcp"
	"sluice/internal/relay/udp"
)

// open makes e's listener.
func (s *Server) open(t Target, e *entry) error {
	var err error
	switch t.Port.Protocol {
	case model.TCP:
		e.listener, err = s.openTCP(t, e)
	case model.UDP:
		e.listener, err = s.openUDP(t, e)
	default:
		err = ErrUnsupported
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

func (l tcpListener) retire() (cut func() int) {
	l.Stop()
	return l.Cut
}

func (l tcpListener) lend() (*os.File, error) {
	l.Pause()
	return l.File()
}

func (e *entry) service(t Target) tcp.Service {
	return tcp.Service{Name: e.name, Picker: e.picker, ProxyProtocol: t.ProxyProtocol, Redirected: !t.Direct, Total: e.count}
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
		l, err := c.Listen(context.Background(), network(t.Listen.Addr()), t.Listen.String())
		if err == nil {
			socket = l.(*net.TCPListener)
		}
		return err
	})
	return socket, err
}

// network is the name of TCP of one family for package net. With "tcp6" it sets IPV6_V6ONLY, so that each family has its
// own socket at a port.
func network(a netip.Addr) string {
	if a.Is4() {
		return "tcp4"
	}
	return "tcp6"
}

// udpListener is a listener whose Target is a udp.Target.
type udpListener struct{ *udp.Listener }

func (l udpListener) change(t Target) { l.Changed(settings(t)) }

// retire ends all sessions at once: as connection tracking's entries of UDP do not outlive their Service in other modes.
func (l udpListener) retire() (cut func() int) {
	l.Close()
	return nil
}

// lend is after reading, for two readers would share the datagrams. Answers of open sessions still leave by the socket.
func (l udpListener) lend() (*os.File, error) {
	l.Stop()
	return l.File()
}

func (s *Server) openUDP(t Target, e *entry) (listener, error) {
	target := udp.Target{Listen: t.Listen, Picker: e.picker, Total: e.count, Looped: s.looped(e), Settings: settings(t)}
	if !t.Direct {
		target.Original = s.tracked.original
	}
	if file := s.inherited.take(t); file != nil {
		defer func() { _ = file.Close() }() // the listener has its own descriptor
		target.Socket = file
		if l, err := s.udp.Listen(target); err == nil {
			return udpListener{l}, nil
		}
		_ = file.Close() // it is of no use, and in the way
		target.Socket = nil
	}
	l, err := s.udp.Listen(target)
	return udpListener{l}, err
}

// looped tells of datagrams that come back from an endpoint that should have taken them.
func (s *Server) looped(e *entry) func() {
	var refused count.Occasion
	return func() {
		if n, tell := refused.Happened(time.Now()); tell {
			s.config.Log.Warn("sessions are refused", "service", e.name, "refused", n, "reason", count.Loop.String(),
				"error", "an endpoint leads back to the Service")
		}
	}
}

func settings(t Target) udp.Settings {
	return udp.Settings{Draining: addresses(t.Draining), ProxyProtocol: t.ProxyProtocol == 2}
}

func addresses(endpoints []plan.Endpoint) []netip.AddrPort {
	var out []netip.AddrPort
	for _, e := range endpoints {
		out = append(out, e.AddrPort)
	}
	return out
}
