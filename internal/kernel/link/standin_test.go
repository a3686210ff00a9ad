package link_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"sluice/internal/kernel/netns"
	"sluice/internal/testkit/nstest"
)

// A connection that speaks from an address goes on when a stand-in takes the place of an interface's, and new ones to that
// address speak from another one.
func TestStandIn(t *testing.T) {
	nstest.Require(t)
	for own, other := range map[string]string{"10.96.0.10/32": "192.168.10.11/24", "fd00:96::a/128": "fd00:10::11/64"} {
		t.Run(own, func(t *testing.T) {
			h, ns := newHandle(t)
			service, node := netip.MustParsePrefix(own), netip.MustParsePrefix(other)
			must(t, h.Up("lo"))
			must(t, h.AddBridge("br0"))
			must(t, h.Up("br0"))
			must(t, h.AddAddress("br0", node))
			must(t, h.AddMuteAddress("br0", service))
			must(t, h.Settle(t.Context()))
			var l net.Listener
			must(t, ns.Do(func() (err error) { l, err = net.Listen("tcp", ":80"); return err }))
			defer func() { _ = l.Close() }()
			before := talk(t, ns, l, service.Addr(), service.Addr())
			for range 2 {
				must(t, h.AddStandIn(service.Addr(), node.Addr()))
			}
			must(t, h.DeleteAddress("br0", service))
			before()
			after := talk(t, ns, l, service.Addr(), node.Addr())
			after()
			if got, err := h.StandIns(); err != nil || !slices.Equal(got, []netip.Addr{service.Addr()}) {
				t.Errorf("there are %v, %v", got, err)
			}
			if got, err := h.SourceTo(node.Addr().Next()); err != nil || got != node.Addr() {
				t.Errorf("source %v, %v, want %s", got, err, node.Addr())
			}
			must(t, h.DeleteStandIn(service.Addr()))
			if got, err := h.StandIns(); err != nil || len(got) > 0 {
				t.Errorf("left are %v, %v", got, err)
			}
		})
	}
}

// talk connects to an address, from the one that is right, and returns what says something by that connection.
func talk(t *testing.T, ns *netns.NS, l net.Listener, to, from netip.Addr) (say func()) {
	t.Helper()
	var client net.Conn
	must(t, ns.Do(func() (err error) {
		client, err = net.Dial("tcp", netip.AddrPortFrom(to, 80).String())
		return err
	}))
	server, err := l.Accept()
	must(t, err)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	if got := netip.MustParseAddrPort(client.LocalAddr().String()).Addr(); got != from {
		t.Errorf("it speaks from %s, want %s", got, from)
	}
	return func() {
		t.Helper()
		_, err := client.Write([]byte("x"))
		must(t, err)
		_, err = server.Read(make([]byte, 1))
		must(t, err)
	}
}
