package instance

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

var (
	// ErrNotRunning occurs when no Sluice runs in this network namespace.
	ErrNotRunning = errors.New("no sluice is running in this network namespace")
	// ErrForbidden occurs when the Sluice that runs is another user's.
	ErrForbidden = errors.New("sluice is running, but only root and the user that runs it may ask it")
)

// Accept waits for the next process that calls [Dial]. Strangers are turned away.
func (c *Claim) Accept() (net.Conn, error) {
	for {
		conn, err := c.listener.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := peer(conn); err == nil && !isStranger(uid) {
			return conn, nil
		}
		_ = conn.Close() // nothing was said
	}
}

// Addr is the name that is held. With it a Claim is a net.Listener.
func (c *Claim) Addr() net.Addr { return c.listener.Addr() }

// Dial connects to the Sluice that works on the network namespace of the calling thread. The error is [ErrNotRunning] or
// [ErrForbidden] where that is the matter.
func Dial() (net.Conn, error) {
	found := ErrNotRunning
	for n := range maxStrangers { // those after a free name too: a stranger may have held that one before
		conn, err := ask(nameOf(n))
		switch {
		case err == nil:
			return conn, nil
		case !errors.Is(err, ErrNotRunning):
			found = err
		}
	}
	return nil, found
}

// ask connects to a name, if a Sluice holds it.
func ask(name string) (net.Conn, error) {
	conn, err := dial(name)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("ask the sluice that is running: %w", err)
	}
	uid, err := peer(conn)
	switch {
	case err == nil && uid == os.Geteuid():
		return conn, nil
	case err == nil && isStranger(uid):
		err = ErrNotRunning
	case err == nil:
		err = ErrForbidden
	}
	_ = conn.Close() // nothing was said
	return nil, err
}
