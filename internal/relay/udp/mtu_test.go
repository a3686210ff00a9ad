package udp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
)

// That a datagram was too long for the way is no reason to leave an endpoint, nor to drop the next one.
func TestTooLongForTheWay(t *testing.T) {
	e := newEngine(t, Config{})
	l := listen(t, e, "::1", serve(t, "a", "::1").addr(), serve(t, "b", "::1").addr())
	client := dial(t, l.Addr())
	first := string(ask(t, client, []byte("?")))
	s := l.find(l.choose(func(*session) bool { return true })[0].key)
	s.mu.Lock()
	way := s.link
	s.mu.Unlock()
	for range 50 { // now the one goroutine is told, now the other
		tellTooBig(t, way.conn.LocalAddr().(*net.UDPAddr).AddrPort(), way.endpoint)
		expect(t, client, first)
	}
	if n := l.Counts().Accepted; n != 1 {
		t.Errorf("%d sessions, want one", n)
	}
}

// tellTooBig says as a router does that a datagram was longer than the way allows.
func tellTooBig(t *testing.T, from, to netip.AddrPort) {
	t.Helper()
	conn, err := net.Dial("ip6:ipv6-icmp", "::1")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const tooBig, mtu, udp, size = 2, 1280, 17, 1400
	b := binary.BigEndian.AppendUint32([]byte{tooBig, 0, 0, 0}, mtu) // the kernel has the checksum
	b = binary.BigEndian.AppendUint16(append(b, 6<<4, 0, 0, 0), size)
	b = append(append(append(b, udp, 64), from.Addr().AsSlice()...), to.Addr().AsSlice()...)
	for _, n := range []uint16{from.Port(), to.Port(), size, 0} {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
}
