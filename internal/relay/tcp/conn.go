package tcp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/kernel/splice"
	"sluice/internal/relay/count"
	"sluice/internal/relay/hops"
)

// conn is one connection of a client, and the one to its endpoint.
type conn struct {
	listener *Listener
	service  *Service // that it was accepted for
	client   *net.TCPConn
	addr     netip.AddrPort // of the endpoint
	port     uint16         // towards it, once there is one
	hop      hops.Hop
	began    time.Time

	ways   [2]way
	broken atomic.Bool  // it ends with a reset
	left   atomic.Int32 // ways that run

	mu       sync.Mutex
	endpoint *net.TCPConn // nil until there is one
	gone     bool         // cut off
}

// way is one direction of a conn.
type way struct {
	*stream
	other *way
	ended atomic.Bool // its source has, and its sink is about to be told
}

// serve sees a connection to the moment when both its ways run. Both are new goroutines: the stack that it took to dial
// is more than they need.
func (c *conn) serve() {
	if why, err := c.connect(); err != nil {
		c.refuse(why, err)
		return
	}
	c.left.Store(2)
	for i := range c.ways {
		c.listener.relay.running.Go(func() { c.run(&c.ways[i]) })
	}
}

// connect finds an endpoint and gets all ready. What it returns with an error is why the client is refused.
func (c *conn) connect() (count.Reason, error) {
	to, redirected := c.original()
	if c.service.Redirected && !redirected {
		return count.NotRedirected, errors.New("the client was not redirected")
	}
	if c.loops(to) {
		return count.Loop, errLoop
	}
	endpoint, why, err := c.dial()
	if err != nil {
		return why, err
	}
	why, err = count.Loop, errLoop
	if !c.loops(to) { // its peer may not have been known before
		why, err = count.Unreachable, c.join(endpoint, to)
	}
	if err != nil {
		reset(endpoint)
		c.service.Picker.End(c.addr)
	}
	return why, err
}

// errLoop is the fault of an endpoint that rules lead to the Listener itself. Each client would make connections without end.
var errLoop = errors.New("an endpoint leads back to the Service")

// loops reports whether c, which was going to an address, has come by a connection of the Listener's own.
func (c *conn) loops(to netip.AddrPort) bool {
	return c.listener.relay.hops.Arrive(&c.hop, c.listener, hops.Way{
		Client: addrPort(c.client.RemoteAddr()), Local: addrPort(c.client.LocalAddr()), To: to,
	})
}

// addrPort has an IPv4 address as such.
func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// join ties the two connections together.
func (c *conn) join(endpoint *net.TCPConn, to netip.AddrPort) error {
	// A socket that refuses keep-alive has lost its connection, which shows soon enough.
	_ = c.client.SetKeepAliveConfig(keepAlive)
	_ = endpoint.SetKeepAliveConfig(keepAlive)
	if err := c.sendHeader(endpoint, to); err != nil {
		return err
	}
	r, counter := c.listener.relay, c.listener.counter
	in, err := newStream(c.client, endpoint, r.pipes, counter.In)
	if err != nil {
		return err
	}
	out, err := newStream(endpoint, c.client, r.pipes, counter.Out)
	if err != nil {
		return err
	}
	c.ways[0].stream, c.ways[1].stream = in, out
	c.ways[0].other, c.ways[1].other = &c.ways[1], &c.ways[0]
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return net.ErrClosed
	}
	c.endpoint = endpoint
	return nil
}

// refuse resets a client that gets no endpoint.
func (c *conn) refuse(why count.Reason, err error) {
	reset(c.client)
	l := c.listener
	if l.relay.live.Err() == nil {
		l.counter.Refuse(why)
	}
	l.tellUnreached(why, err)
	c.leave()
}

// run moves the bytes of one way until that ends. The last way to end ends the connection.
func (c *conn) run(w *way) {
	readErr, writeErr := w.run()
	switch {
	case writeErr != nil:
		c.sinkFailed(w)
	case errors.Is(readErr, os.ErrDeadlineExceeded): // see awaitPeer
		c.close()
	case readErr != nil:
		c.cut()
	default:
		c.sourceEnded(w)
	}
	if c.left.Add(-1) == 0 {
		c.end()
	}
}

// sinkFailed lets the other way deliver what the failed socket has received before it failed, and then resets all.
func (c *conn) sinkFailed(w *way) {
	c.broken.Store(true)
	_ = w.sink.CloseRead() // so that the other way comes to an end whatever has failed
	if w.other.ended.Load() {
		c.close()
	}
}

// sourceEnded tells the sink, and stays until the connection ends.
func (c *conn) sourceEnded(w *way) {
	// The order matters: a socket that is closed because both its ways have ended says so by then.
	reset := w.closed() && !w.other.ended.Load()
	if reset || c.broken.Load() {
		c.cut()
		return
	}
	w.ended.Store(true)
	if w.sink.CloseWrite() != nil {
		c.broken.Store(true)
	}
	if w.other.ended.Load() || c.broken.Load() {
		c.close()
		return
	}
	c.awaitPeer(w)
}

// awaitPeer returns when the connection is closed. If the peer that has ended its way vanishes meanwhile, nobody will take
// what the other side may yet send, and a client that has forgotten about the connection is not to hold it for ever: the
// other way ends then, in order, so that what is still to be delivered to that side is.
func (c *conn) awaitPeer(w *way) {
	err := w.from.Read(splice.Closed)
	if err == nil {
		_ = w.sink.SetReadDeadline(time.Unix(1, 0))
	}
}

// closed reports whether the source has no connection any more.
func (w *way) closed() (is bool) {
	err := w.from.Control(func(fd uintptr) { is = splice.Closed(fd) })
	return is || err != nil
}

// deserted reports whether a sender has gone by a reset while its receiver takes nothing, so that neither way would notice.
func (c *conn) deserted() bool {
	if c.left.Load() == 0 {
		return false // there are no ways yet, or no more
	}
	for i := range c.ways {
		if w := &c.ways[i]; w.stuck.Load() && w.closed() {
			return true
		}
	}
	return false
}

// close ends both connections: in order, or if something has failed with a reset.
func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, side := range []*net.TCPConn{c.client, c.endpoint} {
		switch {
		case side == nil:
		case c.broken.Load():
			reset(side)
		default:
			_ = side.Close()
		}
	}
}

// cut resets both connections, or the client's if there is no other yet.
func (c *conn) cut() {
	c.broken.Store(true)
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	c.close()
}

// end counts what is over.
func (c *conn) end() {
	c.close()
	c.service.Picker.End(c.addr)
	c.listener.counter.Ended(time.Since(c.began))
	c.leave()
}

// leave makes room for another one.
func (c *conn) leave() {
	c.listener.counter.End()
	c.listener.relay.hops.Close(c.port, c.addr, &c.hop)
	c.listener.relay.forget(c)
	c.listener.relay.leave()
}
