package hops

import (
	"net/netip"
	"testing"
)

var (
	there = netip.MustParseAddrPort("10.96.0.1:80")
	other = netip.MustParseAddrPort("10.96.0.2:80")
)

// by is the way of who has a port, to an address.
func by(port uint16, to netip.AddrPort) Way {
	return Way{Client: netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), port), To: to}
}

// A way that comes back to where it was before is none that ends, however many places are between.
func TestLoops(t *testing.T) {
	s := NewSet(nil)
	var client, second, third Hop
	if s.Arrive(&client, "web", by(1000, there)) {
		t.Error("a client is a loop")
	}
	s.Open(1001, other, &client)
	if s.Arrive(&second, "shop", by(1001, other)) {
		t.Error("a Service that leads to another one is a loop")
	}
	s.Open(1002, there, &second)
	if !s.Arrive(&third, "web", by(1002, there)) {
		t.Error("a way that comes back is none")
	}
}

// Who only looks alike is a client: another socket of the same port, or one that is closed.
func TestNoLoops(t *testing.T) {
	s := NewSet(nil)
	var client, stranger Hop
	s.Arrive(&client, "web", by(1000, there))
	s.Open(1001, there, &client)
	if s.Arrive(&stranger, "web", by(1001, other)) {
		t.Error("a client with the port of a socket to elsewhere is a loop")
	}
	s.Close(1001, there, &stranger) // which is not its
	if !s.Arrive(&stranger, "web", by(1001, there)) {
		t.Error("the socket is forgotten")
	}
	s.Close(1001, there, &client)
	if s.Arrive(&stranger, "web", by(1001, there)) || len(s.sockets) != 0 {
		t.Error("the socket is not forgotten")
	}
}

func TestWaysHaveAnEnd(t *testing.T) {
	s := NewSet(nil)
	hops := make([]Hop, most+1)
	for i := range hops {
		loop := s.Arrive(&hops[i], i, by(uint16(i), there))
		if loop != (i == most) {
			t.Errorf("hop %d: loop %t", i, loop)
		}
		s.Open(uint16(i+1), there, &hops[i])
	}
}

// Rules may have given a client another port. Who goes where the proxy never went is not asked for.
func TestRewrittenClients(t *testing.T) {
	asked := 0
	s := NewSet(func(w Way) netip.AddrPort {
		asked++
		return netip.AddrPortFrom(w.Client.Addr(), w.Client.Port()-1000)
	})
	var client, second Hop
	s.Arrive(&client, "web", by(5000, there))
	if asked != 0 {
		t.Error("a client of a Service is asked for")
	}
	s.Open(1001, there, &client)
	if !s.Arrive(&second, "web", by(2001, there)) || asked != 1 {
		t.Errorf("no loop, asked %d times", asked)
	}
}
