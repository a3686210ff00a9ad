package hops

import (
	"net/netip"
	"sync"
)

// most is how many Services one after the other a way may lead through.
const most = 8

// Hop is one passage through the proxy, guarded by the Set that it is handed to.
type Hop struct {
	at     any // what it has come to
	before *Hop
}

// Set are the sockets towards endpoints, and the hops that they were opened for. It is safe for concurrent use.
type Set struct {
	source func(Way) netip.AddrPort

	mu      sync.Mutex
	sockets map[netip.AddrPort]map[uint16]*Hop // by endpoint, and the socket's own port
}

// Way is how somebody has come.
type Way struct {
	// Client and Local are the two ends as the proxy sees them.
	Client, Local netip.AddrPort
	To            netip.AddrPort // where the client was going
}

// NewSet makes an empty Set. source tells who the client was before rules gave it another address; nil: they never do.
func NewSet(source func(Way) netip.AddrPort) *Set {
	if source == nil {
		source = func(w Way) netip.AddrPort { return w.Client }
	}
	return &Set{source: source, sockets: map[netip.AddrPort]map[uint16]*Hop{}}
}

// Open notes a socket of the proxy's own to an endpoint, until Close.
func (s *Set) Open(port uint16, to netip.AddrPort, h *Hop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sockets[to] == nil {
		s.sockets[to] = map[uint16]*Hop{}
	}
	s.sockets[to][port] = h
}

// Close takes back an Open for h.
func (s *Set) Close(port uint16, to netip.AddrPort, h *Hop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sockets[to][port] != h {
		return
	}
	if delete(s.sockets[to], port); len(s.sockets[to]) == 0 {
		delete(s.sockets, to)
	}
}

// Arrive notes that h is at a place, and how it has come there. It reports whether that way has been here before, or is too
// long to end well.
func (s *Set) Arrive(h *Hop, at any, w Way) (loop bool) {
	var port uint16
	if s.leads(w.To) {
		port = s.source(w).Port()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.at, h.before = at, s.sockets[w.To][port]
	n := 0
	for b := h.before; b != nil; b = b.before {
		if n++; b.at == at || n >= most {
			return true
		}
	}
	return false
}

// leads reports whether the proxy itself has a socket to an address.
func (s *Set) leads(to netip.AddrPort) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sockets[to]) > 0
}
