package tcp

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"sluice/internal/relay/count"
)

// dial connects to an endpoint, one after the other until one answers, all have been tried, or it has taken too long.
// why says what is to be counted when none did.
func (c *conn) dial() (endpoint *net.TCPConn, why count.Reason, err error) {
	var tried []netip.AddrPort
	client := addrPort(c.client.RemoteAddr()).Addr()
	until := c.began.Add(c.listener.relay.config.DialTotal)
	why, err = count.NoEndpoint, errors.New("no endpoint")
	for {
		addr, ok := c.service.Picker.Pick(client, tried)
		if !ok || len(tried) > 0 && time.Now().After(until) {
			return nil, why, err
		}
		endpoint, err = c.try(addr, until)
		if err == nil {
			return endpoint, 0, nil
		}
		if ownFault(err) {
			return nil, count.Resources, err
		}
		why = count.Unreachable
		tried = append(tried, addr)
	}
}

// try connects to one endpoint, and tells the Picker how it went.
func (c *conn) try(addr netip.AddrPort, until time.Time) (endpoint *net.TCPConn, err error) {
	r, picker := c.listener.relay, c.service.Picker
	dialer := r.dialer
	dialer.Deadline = until
	picker.Begin(addr)
	// Not DialTCP: it binds, and a port that is bound before the endpoint is known is nobody else's, whichever endpoint
	// that one goes to. All ports of the machine would be taken by as many connections.
	var conn net.Conn
	err = r.config.In(func() (err error) {
		conn, err = dialer.DialContext(r.live, "tcp", addr.String())
		return err
	})
	if err == nil {
		endpoint, c.addr = conn.(*net.TCPConn), addr
		c.port = addrPort(endpoint.LocalAddr()).Port()
		r.hops.Open(c.port, c.addr, &c.hop)
		picker.Worked(addr)
		return endpoint, nil
	}
	picker.End(addr)
	if r.live.Err() == nil {
		c.listener.counter.DialFailed()
	}
	if r.live.Err() == nil && !ownFault(err) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
		picker.Failed(addr)
	}
	return nil, err
}

// ownFault reports whether a dial failed for want of something of this machine, which no other endpoint would mend.
// That all ports towards one endpoint are taken (EADDRNOTAVAIL) is not its fault either, but another one may do.
func ownFault(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
