package udp

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/relay/count"
	"sluice/internal/relay/pick"
)

// room is what a listening socket has for datagrams that wait to be read. The kernel's default, 208 KiB, is less than
// 300 small ones.
const room = 1 << 20

// Target is where to listen, and for what.
type Target struct {
	// Listen is an address of this machine, or the unspecified one of a family for all addresses of that family.
	Listen netip.AddrPort
	// Socket is one that listens there already, of the process before. The Listener duplicates it; nil: a new one.
	Socket *os.File
	// Picker chooses the endpoints of sessions. Its owner changes it, and calls [Listener.Changed] then.
	Picker *pick.Picker
	// Original, if not nil, is asked once for each new session where the client's datagrams went before something
	// redirected them here, at local. If it does not know, they did not go anywhere else, and they are dropped.
	Original func(client, local netip.AddrPort) (netip.AddrPort, bool)
	// Looped, if not nil, is called for each session that is refused since an endpoint leads back to the Listener.
	Looped func()
	// Total is the parent of the Listener's counter. Nil: that of all Listeners.
	Total *count.Counter
	Settings
}

func (t *Target) looped() {
	if t.Looped != nil {
		t.Looped()
	}
}

// Settings are what of a Target may change.
type Settings struct {
	// Draining are endpoints that are not in the Picker and keep the sessions that they have.
	Draining []netip.AddrPort
	// ProxyProtocol puts a header of the PROXY protocol, version 2, before each datagram of sessions that begin. Version 1
	// has none for UDP.
	ProxyProtocol bool
}

// Listener is the socket of a Target, and its sessions.
type Listener struct {
	engine *Engine
	target Target // but for its Settings
	local  netip.AddrPort
	socket *socket

	reader  sync.WaitGroup
	running sync.WaitGroup // goroutines of sessions
	stopped atomic.Bool    // nothing is read any more
	waiting atomic.Int32   // sessions that are being opened
	count   *count.Counter
	stats   counters

	mu       sync.Mutex
	settings Settings
	sessions map[key]*session
}

// Listen opens the socket of a Target and relays what comes by it. [Listener.Close] ends it.
func (e *Engine) Listen(t Target) (*Listener, error) {
	l := &Listener{engine: e, target: t, count: count.New(cmp.Or(t.Total, e.config.Total)), settings: t.Settings, sessions: map[key]*session{}}
	l.stats.parent = &e.stats
	conn, err := e.listen(t)
	if err != nil {
		return nil, err
	}
	if l.socket, err = newSocket(conn); err != nil {
		_ = conn.Close() // the first error counts
		return nil, err
	}
	l.local = l.socket.addr()
	if err := e.keep(l); err != nil {
		_ = conn.Close()
		return nil, err
	}
	l.reader.Go(l.read)
	return l, nil
}

func (e *Engine) listen(t Target) (conn *net.UDPConn, err error) {
	if t.Socket != nil {
		return inherit(t.Socket)
	}
	err = e.config.In(func() error {
		conn, err = net.ListenUDP(network(t.Listen.Addr()), net.UDPAddrFromAddrPort(t.Listen))
		return err
	})
	return conn, err
}

func inherit(f *os.File) (*net.UDPConn, error) {
	conn, err := net.FilePacketConn(f)
	if err != nil {
		return nil, fmt.Errorf("inherited socket %s: %w", f.Name(), err)
	}
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		_ = conn.Close()
		return nil, fmt.Errorf("inherited socket %s: a socket of %s, not of UDP", f.Name(), conn.LocalAddr().Network())
	}
	return udp, nil
}

// network is Go's name for UDP of one family: "udp" would listen at both.
func network(a netip.Addr) string {
	if a.Is4() {
		return "udp4"
	}
	return "udp6"
}

// Addr is where it listens.
func (l *Listener) Addr() netip.AddrPort { return l.local }

// Changed takes over settings, and ends the sessions whose endpoints are neither in the Picker nor draining.
func (l *Listener) Changed(s Settings) {
	l.mu.Lock()
	l.settings = s
	l.mu.Unlock()
	for _, s := range l.choose((*session).lost) {
		s.end(EndpointGone)
	}
}

// File is a duplicate of the socket, for another process. Both must not read: [Listener.Stop] this one first. What then
// waits in the socket is for the other, and so are the next datagrams of clients that have a session here.
func (l *Listener) File() (*os.File, error) { return l.socket.conn.File() }

// Stop returns when no more is read. Answers are passed on until the sessions have been silent for [Linger].
func (l *Listener) Stop() {
	l.stopped.Store(true)
	_ = l.socket.conn.SetReadDeadline(time.Unix(1, 0)) // it fails for closed sockets alone
	l.reader.Wait()
}

// Resume reads again after [Listener.Stop].
func (l *Listener) Resume() {
	l.stopped.Store(false)
	_ = l.socket.conn.SetReadDeadline(time.Time{})
	l.reader.Go(l.read)
}

// Close ends the socket and all sessions, and returns how many these were.
func (l *Listener) Close() int {
	l.Stop()
	all := l.choose(func(*session) bool { return true })
	for _, s := range all {
		s.end(Closed)
	}
	l.running.Wait()
	_ = l.socket.conn.Close() // nothing is lost with it
	l.engine.forget(l)
	return len(all)
}

// choose lists some of the sessions.
func (l *Listener) choose(which func(*session) bool) []*session {
	l.mu.Lock()
	all := slices.AppendSeq(make([]*session, 0, len(l.sessions)), maps.Values(l.sessions))
	l.mu.Unlock()
	return slices.DeleteFunc(all, func(s *session) bool { return !which(s) })
}

// keeps reports whether a session may be with an endpoint.
func (l *Listener) keeps(endpoint netip.AddrPort) bool {
	if l.target.Picker.Has(endpoint) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.settings.Draining, endpoint)
}

// forget takes a session out of the table, where another may have its place by now.
func (l *Listener) forget(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions[s.key] == s {
		delete(l.sessions, s.key)
	}
}
