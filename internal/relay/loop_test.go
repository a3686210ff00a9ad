package relay_test

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/relay"
	"sluice/internal/relay/count"
)

// service is a Target that rules lead to from an address.
func service(t *testing.T, name string, p model.Protocol, at netip.AddrPort, proxyPort uint16, endpoints ...netip.AddrPort) relay.Target {
	t.Helper()
	redirect(t, at, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), proxyPort))
	target := direct(name, p, netip.AddrPortFrom(netip.IPv4Unspecified(), proxyPort), endpoints...)
	target.Direct = false
	return target
}

// An endpoint that rules lead to the Service itself costs a client two connections and not all that there may be: both are
// reset at once.
func TestEndpointThatLeadsBack(t *testing.T) {
	noLeak(t)
	var log bytes.Buffer
	s := newServer(t, relay.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	a, b := netip.MustParseAddrPort("127.9.9.1:8001"), netip.MustParseAddrPort("127.9.9.2:8002")
	self := service(t, "self", model.TCP, a, 10901, a)
	put(t, s, self)
	for range 20 {
		wantReset(t, a)
	}
	until(t, "all are refused", func() bool { return s.Stats().Total.Open == 0 })
	n := s.Stats().Targets[self.Key]
	if n.Refused[count.Loop] < 20 || n.Accepted > 4*20 {
		t.Errorf("counted %+v", n)
	}
	if told := strings.Count(log.String(), "level=WARN"); told != 1 || !strings.Contains(log.String(), "service=ns/self refused=1 reason=loop") {
		t.Errorf("told %d times, want once:\n%s", told, &log)
	}

	// So does one that leads there by way of another Service.
	put(t, s, service(t, "there", model.TCP, b, 10902, a))
	self.Endpoints[0].AddrPort = b
	put(t, s, self)
	wantReset(t, a)
	wantReset(t, b)
	until(t, "all are refused", func() bool { return s.Stats().Total.Open == 0 })

	// A way that ends somewhere is as good as any.
	self.Endpoints[0].AddrPort = named(t, "end", "127.0.0.1")
	put(t, s, self)
	receive(t, dial(t, b), "end")
}

func TestEndpointOfDatagramsThatLeadsBack(t *testing.T) {
	noLeak(t)
	var log bytes.Buffer
	s := newServer(t, relay.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	a, b := netip.MustParseAddrPort("127.9.9.1:8003"), netip.MustParseAddrPort("127.9.9.2:8004")
	self := service(t, "self", model.UDP, a, 10903, a)
	put(t, s, self, service(t, "there", model.UDP, b, 10904, a))
	client := dialUDP(t, b)
	for range 3 {
		if _, err := client.Write([]byte("hello?")); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the loop is found", func() bool { return s.Stats().Targets[self.Key].Refused[count.Loop] > 0 })
	if n := s.Stats().Total; n.Accepted > 2+3 || n.Open > 2 {
		t.Errorf("a client has made %+v", n)
	}
	s.Remove(self.Key)
	self.Endpoints = []plan.Endpoint{{AddrPort: udpEndpoint(t), Weight: 1}}
	put(t, s, self)
	say(t, dialUDP(t, b), "by way of another Service")
	if told := strings.Count(log.String(), "reason=loop"); told != 1 {
		t.Errorf("told %d times, want once:\n%s", told, &log)
	}
}
