package udp

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// Each datagram has the header, so that none has to be the first.
func TestProxyProtocol(t *testing.T) {
	for _, c := range []struct{ at, service string }{
		{"127.0.0.1", "10.96.0.10:53"},
		{"::1", "[fd00:96::10]:53"},
	} {
		e := newEngine(t, Config{})
		endpoint := bind(t, c.at)
		l := listenFor(t, e, Target{
			Listen: netip.AddrPortFrom(netip.MustParseAddr(c.at), 0), Picker: picker(e, endpoint.LocalAddr().(*net.UDPAddr).AddrPort()),
			Original: func(_, _ netip.AddrPort) (netip.AddrPort, bool) { return netip.MustParseAddrPort(c.service), true },
			Settings: Settings{ProxyProtocol: true},
		})
		client := dial(t, l.Addr())
		for _, payload := range [][]byte{[]byte("first"), {}, bytes.Repeat([]byte("x"), 65507-headerSize)} {
			if _, err := client.Write(payload); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 1<<16)
			_ = endpoint.SetReadDeadline(time.Now().Add(patience))
			n, err := endpoint.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			h, rest, err := proxyproto.ParseUDPDatagram(b[:n])
			if err != nil {
				t.Fatal(err)
			}
			if h.SourceAddr.String() != client.LocalAddr().String() || h.DestinationAddr.String() != c.service || h.Version != 2 {
				t.Errorf("version %d from %s to %s, want 2, %s and %s", h.Version, h.SourceAddr, h.DestinationAddr,
					client.LocalAddr(), c.service)
			}
			if !bytes.Equal(rest, payload) {
				t.Errorf("%d bytes follow, want the client's %d", len(rest), len(payload))
			}
		}
	}
}

func TestTooLongWithItsHeader(t *testing.T) {
	e := newEngine(t, Config{})
	s := serve(t, "", "127.0.0.1")
	l := listenFor(t, e, Target{
		Listen: netip.MustParseAddrPort("127.0.0.1:0"), Picker: picker(e, s.addr()), Settings: Settings{ProxyProtocol: true},
	})
	client := dial(t, l.Addr())
	if _, err := client.Write(make([]byte, 65507)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is dropped", func() bool { return l.Stats().Dropped[Unsendable] == 1 })
	ask(t, client, []byte("short"))
}

func TestHeaderOfTheLongestSize(t *testing.T) {
	got := header(netip.MustParseAddrPort("[fe80::1%eth0]:1"), netip.MustParseAddrPort("[fd00::2]:53"))
	if len(got) != headerSize {
		t.Errorf("%d bytes, want %d", len(got), headerSize)
	}
}
