package udp

import (
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"
)

// headerSize is room for a header of the PROXY protocol, version 2: 16 bytes and two IPv6 addresses with ports.
const headerSize = 16 + 2*(16+2)

// header is a header of the PROXY protocol, version 2: the client, and where it sent to. Nil if the two are of different
// families, which no redirection makes.
//
// A receiver reads it from each datagram anew (proxy-protocol.txt, section 2: the header and what is proxied are one
// datagram), since the first of a session may be lost.
func header(client, to netip.AddrPort) []byte {
	client = netip.AddrPortFrom(client.Addr().WithZone(""), client.Port())
	h := proxyproto.HeaderProxyFromAddrs(2, net.UDPAddrFromAddrPort(client), net.UDPAddrFromAddrPort(to))
	h.Command = proxyproto.PROXY
	b, err := h.Format()
	if err != nil {
		return nil
	}
	return b
}

func (l *Listener) wantsHeader() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settings.ProxyProtocol
}
