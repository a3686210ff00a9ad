package httpd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// roomPause is the wait before the next try, where there is no room and nobody to send away.
	roomPause = 100 * time.Millisecond
	// tellEvery is the least time between two complaints about it.
	tellEvery = time.Minute
)

// crowd is a listener whose connections are maxClients at most. Where there is no room for one more, because of that or
// because this process or the kernel has none, the one goes that has been silent for longest: who asks at once, as any
// honest client does, is answered however many others only take places. Those that are being answered stay.
type crowd struct {
	net.Listener
	log *slog.Logger

	mu      sync.Mutex // guards all that follows, and the clients
	left    sync.Cond  // somebody left or was answered, or there is an end
	clients []*client  // who has been silent for longest comes first
	closed  bool

	told time.Time // Accept's alone
}

// client is a connection of a crowd.
type client struct {
	net.Conn
	crowd *crowd
	asked bool // it is being answered
}

func newCrowd(socket net.Listener, log *slog.Logger) *crowd {
	c := &crowd{Listener: socket, log: log}
	c.left.L = &c.mu
	return c
}

// Accept waits for the next connection, whatever stands in its way but the end of the listener.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		switch {
		case err == nil:
			return c.enter(conn), nil
		case !noRoom(err):
			return nil, err
		}
		c.tell(err)
		if !c.sendAway() {
			time.Sleep(roomPause)
		}
	}
}

// noRoom reports whether an error is that this process, or the kernel, has no room for another connection.
func noRoom(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

func (c *crowd) tell(err error) {
	if now := time.Now(); now.Sub(c.told) >= tellEvery {
		c.told = now
		c.log.Warn("no room for another client; those that are silent are sent away", "address", c.Addr().String(), "error", err)
	}
}

// enter gives a connection its place, as soon as there is one.
func (c *crowd) enter(conn net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.clients) >= maxClients && !c.closed && !c.dismiss() {
		c.left.Wait()
	}
	in := &client{Conn: conn, crowd: c}
	c.clients = append(c.clients, in)
	return in
}

func (c *crowd) sendAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dismiss()
}

// dismiss ends the connection that has been silent for longest, if any is. It is called with the lock.
func (c *crowd) dismiss() bool {
	i := slices.IndexFunc(c.clients, func(in *client) bool { return !in.asked })
	if i < 0 {
		return false
	}
	_ = c.clients[i].Conn.Close() // nothing was said
	c.clients = slices.Delete(c.clients, i, i+1)
	return true
}

// Close ends the listener. Its connections go on.
func (c *crowd) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.left.Broadcast()
	return c.Listener.Close()
}

// Close ends a connection, and its place is free.
func (in *client) Close() error {
	in.crowd.mu.Lock()
	in.crowd.clients = slices.DeleteFunc(in.crowd.clients, func(other *client) bool { return other == in })
	in.crowd.mu.Unlock()
	in.crowd.left.Signal()
	return in.Conn.Close()
}

// mark is that it is being answered, or that it has been, and now comes last of those that are silent.
func (in *client) mark(asked bool) {
	c := in.crowd
	c.mu.Lock()
	in.asked = asked
	if i := slices.Index(c.clients, in); i >= 0 && !asked {
		c.clients = append(slices.Delete(c.clients, i, i+1), in)
	}
	c.mu.Unlock()
	c.left.Signal()
}

// clientKey is the key of a request's client in its context.
type clientKey struct{}

// remember has the requests of a connection know whose they are.
func remember(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, conn)
}

// marked is next, with each client marked for as long as it is being answered.
func marked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if in, ok := r.Context().Value(clientKey{}).(*client); ok {
			in.mark(true)
			defer in.mark(false)
		}
		next.ServeHTTP(w, r)
	})
}
