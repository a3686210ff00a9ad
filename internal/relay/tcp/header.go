package tcp

import (
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"

	"sluice/internal/kernel/splice"
)

// sendHeader tells the endpoint of the client, if the Service wants that. to is where the client was going.
func (c *conn) sendHeader(endpoint *net.TCPConn, to netip.AddrPort) error {
	if c.service.ProxyProtocol == 0 {
		return nil
	}
	header := proxyproto.HeaderProxyFromAddrs(c.service.ProxyProtocol, c.client.RemoteAddr(), net.TCPAddrFromAddrPort(to))
	_, err := header.WriteTo(endpoint)
	return err
}

// original is where the client was going; ok is false if it was going to this very socket, so that nobody redirected it.
func (c *conn) original() (to netip.AddrPort, ok bool) {
	local := addrPort(c.client.LocalAddr())
	local = netip.AddrPortFrom(local.Addr().WithZone(""), local.Port()) // as the kernel tells the other one
	raw, err := c.client.SyscallConn()
	if err != nil {
		return local, false
	}
	ask := splice.OriginalDst6
	if local.Addr().Is4() {
		ask = splice.OriginalDst4
	}
	err2 := raw.Control(func(fd uintptr) { to, err = ask(fd) })
	if err != nil || err2 != nil { // connection tracking has not seen it, so nothing was rewritten
		return local, false
	}
	return to, to != local
}
