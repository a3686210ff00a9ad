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

// Set are the sockets towards endpoints, and the hops that they were opened for. The zero value is empty; it is safe for
// concurrent use.
type Set struct {
	mu      sync.Mutex
	sockets map[socket]*Hop
}

type socket struct {
	port uint16
	to   netip.AddrPort
}

// Open notes a socket of the proxy's own, until Close.
func (s *Set) Open(port uint16, to netip.AddrPort, h *Hop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sockets == nil {
		s.sockets = map[socket]*Hop{}
	}
	s.sockets[socket{port, to}] = h
}

// Close takes back an Open for h.
func (s *Set) Close(port uint16, to netip.AddrPort, h *Hop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sockets[socket{port, to}] == h {
		delete(s.sockets, socket{port, to})
	}
}

// Arrive notes that h is at a place, by a socket of this port that was opened to an address. It reports whether that way
// has been here before, or is too long to end well.
func (s *Set) Arrive(h *Hop, at any, port uint16, to netip.AddrPort) (loop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.at, h.before = at, s.sockets[socket{port, to}]
	n := 0
	for b := h.before; b != nil; b = b.before {
		if n++; b.at == at || n >= most {
			return true
		}
	}
	return false
}
