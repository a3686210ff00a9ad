// Package instance keeps a second Sluice from working on the same network namespace, and leads to the first.
//
// The mark is an abstract UNIX socket. The kernel keeps such names per network namespace, which is what two daemons
// would fight over, and lets go of them when the process ends, however it ends: no stale file is left to clean up.
// Anybody can take such a name, so one that a stranger holds counts for nothing, and the next name is taken instead:
// a user without power over the network must not keep Sluice from working.
//
// Other processes may ask the one that holds it, by [Dial]: those of root and of its own user.
//
// Invariant: at most one process per network namespace holds a [Claim], as long as no stranger meddles.
package instance

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrRunning occurs when a Sluice already runs in this network namespace.
var ErrRunning = errors.New("another sluice is running in this network namespace")

const (
	// socketName is an abstract address; net writes its first byte, which is 0, as @.
	socketName = "@sluice"
	// maxStrangers is how many names are passed over.
	maxStrangers = 100
	// listenTime is more than lies between the binding of a name and the listening at it, in one Take.
	listenTime = 100 * time.Millisecond
)

// Claim is the right to work on a network namespace. It ends with Close or with the process.
type Claim struct {
	listener *net.UnixListener
}

// Take claims the network namespace of the calling thread.
func Take() (*Claim, error) {
	for n := range maxStrangers {
		name := nameOf(n)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		switch {
		case err == nil:
			return &Claim{listener: l}, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("claim the network namespace: %w", err)
		case !heldByStranger(name):
			return nil, fmt.Errorf("%w (it holds the socket %s)", ErrRunning, name)
		}
	}
	return nil, fmt.Errorf("claim the network namespace: processes of other users hold all sockets from %s to %s", nameOf(0), nameOf(maxStrangers-1))
}

// nameOf is the n-th name, from 0.
func nameOf(n int) string {
	if n == 0 {
		return socketName
	}
	return socketName + "." + strconv.Itoa(n)
}

// heldByStranger reports whether a name is held by a user who is neither this one nor root, or by nobody who listens.
// In doubt it is not.
func heldByStranger(name string) bool {
	conn, err := dial(name)
	if errors.Is(err, syscall.ECONNREFUSED) {
		time.Sleep(listenTime)
		conn, err = dial(name)
	}
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	defer func() { _ = conn.Close() }() // nothing was said
	uid, err := peer(conn)
	return err == nil && isStranger(uid)
}

// isStranger reports whether a user is neither this one nor root.
func isStranger(uid int) bool { return uid != 0 && uid != os.Geteuid() }

// peer is the user at the other end.
func peer(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, credErr); err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

func dial(name string) (*net.UnixConn, error) {
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
}

// Close gives the claim back.
func (c *Claim) Close() error {
	return c.listener.Close()
}
