package relay_test

import (
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
)

// What a Target has counted is its Service port's, for as long as that has any.
func TestNumbersOfServicePorts(t *testing.T) {
	noLeak(t)
	s := newServer(t, relay.Config{Connections: 100, Sessions: 10})
	e := named(t, "a", "127.0.0.1")
	one := direct("web", model.TCP, freePort(t, "127.0.0.1"), e)
	other := one
	other.List, other.Listen = plan.ListLocal, freePort(t, "127.0.0.1")
	dns := direct("dns", model.UDP, freePort(t, "127.0.0.1"), udpEndpoint(t))
	put(t, s, one, other, dns)
	receive(t, dial(t, one.Listen), "a")
	receive(t, dial(t, other.Listen), "a")
	say(t, dialUDP(t, dns.Listen), "question")
	n := s.Stats()
	if n.Ports[one.Port].Open != 2 || n.Ports[dns.Port].Open != 1 || n.TCP.Open != 2 || n.UDP.Open != 1 || n.Total.Open != 3 {
		t.Errorf("open are %+v, of TCP %d, UDP %d, all %d", n.Ports, n.TCP.Open, n.UDP.Open, n.Total.Open)
	}
	if n.Connections != 100 || n.Sessions != 10 {
		t.Errorf("limits are %d and %d", n.Connections, n.Sessions)
	}
	s.Remove(one.Key)
	if n := s.Stats(); n.Ports[one.Port].Accepted != 2 || n.Targets[other.Key].Accepted != 1 {
		t.Errorf("without one of two Targets: %+v", n)
	}
	s.Remove(other.Key)
	if n := s.Stats(); len(n.Ports) != 1 || n.TCP.Open != 2 {
		t.Errorf("without Targets: %+v", n)
	}
	bad := direct("bad", model.SCTP, one.Listen, e)
	if err := s.Put(bad); err == nil || len(s.Stats().Ports) != 1 {
		t.Errorf("error %v, %d Service ports", err, len(s.Stats().Ports))
	}
}
