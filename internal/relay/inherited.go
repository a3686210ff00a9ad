package relay

import (
	"net"
	"net/netip"
	"os"

	"sluice/internal/model"
)

// inherited are sockets of the process before this one that no Target has taken yet.
type inherited map[place]Socket

// place is what only one socket can be bound to.
type place struct {
	protocol model.Protocol
	listen   netip.AddrPort
}

func inherit(sockets []Socket) inherited {
	in := inherited{}
	for _, s := range sockets {
		in[place{s.Port.Protocol, s.Listen}] = s
	}
	return in
}

// take is the socket for t; nil if there is none. A socket that was another Target's is closed, so that the port is free:
// clients that wait there want another Service.
func (in inherited) take(t Target) *os.File {
	at := place{t.Port.Protocol, t.Listen}
	s, ok := in[at]
	if !ok {
		return nil
	}
	delete(in, at)
	if s.Key != t.Key {
		_ = s.File.Close()
		return nil
	}
	return s.File
}

// tcp is take for TCP. A socket that is not what it is said to be is closed.
func (in inherited) tcp(t Target) *net.TCPListener {
	file := in.take(t)
	if file == nil {
		return nil
	}
	defer func() { _ = file.Close() }() // the listener has its own descriptor
	l, err := net.FileListener(file)
	if err != nil {
		return nil
	}
	socket, ok := l.(*net.TCPListener)
	if !ok || !at(socket.Addr(), t.Listen) {
		_ = l.Close()
		return nil
	}
	return socket
}

func at(a net.Addr, want netip.AddrPort) bool {
	tcp, ok := a.(*net.TCPAddr)
	got := tcp.AddrPort()
	return ok && got.Port() == want.Port() && got.Addr().Unmap() == want.Addr()
}

// untaken are those that nobody took and which says, which are the caller's from now on.
func (in inherited) untaken(which func(Key) bool) (sockets []Socket) {
	for at, s := range in {
		if which(s.Key) {
			delete(in, at)
			sockets = append(sockets, s)
		}
	}
	return sockets
}

// close lets go of what nobody took.
func (in inherited) close() {
	for _, s := range in {
		_ = s.File.Close()
	}
	clear(in)
}
