package tcp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/internal/relay/count"
	"sluice/internal/relay/pick"
)

// How long a Listener waits after a failure to accept: the first, and the most.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// Service is what a Listener accepts for.
type Service struct {
	Name   string // for logs
	Picker *pick.Picker
	// ProxyProtocol is the version of the header that endpoints get first; 0: none.
	ProxyProtocol uint8
	// Redirected refuses clients that connected to the socket itself and were not redirected to it by the kernel.
	Redirected bool
	// Total is the parent of the Listener's counter; it does not change. Nil: that of all.
	Total *count.Counter
}

// Listener accepts connections for one Service. It is safe for concurrent use.
type Listener struct {
	relay   *Relay
	socket  *net.TCPListener
	counter *count.Counter
	service atomic.Pointer[Service]

	unreached count.Occasion // no endpoint took a connection
	failed    count.Occasion // accept failed

	stopped   context.Context
	stop      context.CancelFunc
	paused    atomic.Bool
	accepting sync.WaitGroup
}

// Serve accepts from socket, which is the Listener's from now on, until [Listener.Stop].
func (r *Relay) Serve(socket *net.TCPListener, s Service) *Listener {
	stopped, stop := context.WithCancel(context.Background())
	l := &Listener{
		relay: r, socket: socket, counter: count.New(cmp.Or(s.Total, r.config.Total)),
		stopped: stopped, stop: stop,
	}
	l.Change(s)
	if raw, err := socket.SyscallConn(); err == nil { // else it is closed, which accept tells
		_ = keepUrgent("", "", raw)
	}
	l.accepting.Go(l.accept)
	return l
}

// Change makes s the Service of new connections.
func (l *Listener) Change(s Service) { l.service.Store(&s) }

// Counts are the numbers of this Listener.
func (l *Listener) Counts() count.Counts { return l.counter.Counts() }

// File is another descriptor of the socket, which the caller closes.
func (l *Listener) File() (*os.File, error) { return l.socket.File() }

// Stop closes the socket and returns when nothing is accepted any more. It does not shut the socket down: what waits in
// it is for who else has it open. Connections that are open go on.
func (l *Listener) Stop() {
	l.stop()
	_ = l.socket.Close() // the file is gone whatever it says
	l.accepting.Wait()
}

// Pause returns when nothing is accepted until [Listener.Resume]. What comes waits in the socket, for whoever has it open.
func (l *Listener) Pause() {
	l.paused.Store(true)
	_ = l.socket.SetDeadline(time.Unix(1, 0)) // it fails for closed sockets alone
	l.accepting.Wait()
}

// Resume ends a Pause.
func (l *Listener) Resume() {
	l.paused.Store(false)
	_ = l.socket.SetDeadline(time.Time{})
	l.accepting.Go(l.accept)
}

// Cut resets the connections that came by l and are still open, and returns how many those are.
func (l *Listener) Cut() int {
	return l.relay.cut(func(c *conn) bool { return c.listener == l })
}

func (l *Listener) accept() {
	pause := firstPause
	for {
		client, err := l.socket.AcceptTCP()
		switch {
		case err == nil:
			pause = firstPause
			l.take(client)
		case l.stopped.Err() != nil || l.paused.Load():
			return
		case ofTheClient(err):
		default:
			l.recover(err)
			wait(l.stopped, pause)
			pause = min(2*pause, lastPause)
		}
	}
}

// ofTheClient reports whether accept failed for that connection alone: accept(2) hands on what has happened to it.
func ofTheClient(err error) bool {
	return errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EPROTO)
}

func wait(stopped context.Context, d time.Duration) {
	select {
	case <-stopped.Done():
	case <-time.After(d):
	}
}

// take relays a connection, or refuses it at once.
func (l *Listener) take(client *net.TCPConn) {
	l.counter.Accept()
	if !l.relay.admit(l.counter.Open()) {
		reset(client)
		l.counter.Refuse(count.Limit)
		l.tellFull()
		return
	}
	l.counter.Begin()
	c := &conn{listener: l, service: l.service.Load(), client: client, began: time.Now()}
	l.relay.remember(c)
	l.relay.running.Go(c.serve)
}

// recover refuses who waits while no file can be opened.
func (l *Listener) recover(err error) {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		for range l.relay.spare.shed(l.socket) {
			l.counter.Accept()
			l.counter.Refuse(count.Resources)
		}
	}
	if n, tell := l.failed.Happened(time.Now()); tell {
		l.relay.config.Log.Error("connections can't be accepted", "service", l.service.Load().Name, "times", n, "error", err)
	}
}

func (l *Listener) tellFull() {
	if n, tell := l.relay.full.Happened(time.Now()); tell {
		l.relay.config.Log.Warn("connections are refused: too many are open", "service", l.service.Load().Name, "refused", n,
			"open", l.relay.open.Load(), "of the service", l.counter.Open(), "limit", l.relay.config.Connections)
	}
}

// tellUnreached tells of clients that are refused for what the operator can change.
func (l *Listener) tellUnreached(why count.Reason, err error) {
	if why == count.NotRedirected || l.relay.live.Err() != nil {
		return
	}
	if n, tell := l.unreached.Happened(time.Now()); tell {
		l.relay.config.Log.Warn("connections are refused", "service", l.service.Load().Name, "refused", n, "reason", why.String(),
			"error", err)
	}
}

// reset closes c so that its peer sees a reset, and not an orderly end.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0) // it may be closed by now
	_ = c.Close()
}
