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
	// remainTime is more than a process needs to become the program that a dead one wanted to start.
	remainTime = 2 * time.Second
)

// errStranger occurs when a stranger holds a name.
var errStranger = errors.New("a stranger holds the name")

// Claim is the right to work on a network namespace. It ends with Close or with the process.
type Claim struct {
	listener *net.UnixListener
}

// Take claims the network namespace of the calling thread.
func Take() (*Claim, error) {
	for n := range maxStrangers {
		c, err := takeName(nameOf(n))
		if !errors.Is(err, errStranger) {
			return c, err
		}
	}
	return nil, fmt.Errorf("claim the network namespace: processes of other users hold all sockets from %s to %s", nameOf(0), nameOf(maxStrangers-1))
}

// takeName takes a name. One that is held by what a dead process has left is free in a moment.
func takeName(name string) (*Claim, error) {
	strange := false
	for end := time.Now().Add(remainTime); ; time.Sleep(time.Millisecond) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		switch {
		case err == nil:
			return &Claim{listener: l}, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("claim the network namespace: %w", err)
		case strange:
			return nil, errStranger
		case heldByStranger(name):
			strange = true // or it has become free meanwhile
		case time.Now().After(end) || !heldByRemains(name):
			return nil, fmt.Errorf("%w (it holds the socket %s)", ErrRunning, name)
		}
	}
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

// heldByRemains reports whether the process that took a name is dead. If it was killed while it started a program, the
// name is held until the new process has dropped what it inherited.
func heldByRemains(name string) bool {
	conn, err := dial(name)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	defer func() { _ = conn.Close() }() // nothing was said
	who, err := credentials(conn)
	return err == nil && errors.Is(unix.Kill(int(who.Pid), 0), unix.ESRCH)
}

// isStranger reports whether a user is neither this one nor root.
func isStranger(uid int) bool { return uid != 0 && uid != os.Geteuid() }

// peer is the user at the other end.
func peer(conn *net.UnixConn) (uid int, err error) {
	who, err := credentials(conn)
	if err != nil {
		return 0, err
	}
	return int(who.Uid), nil
}

// credentials are those of the process at the other end, when it began to listen.
func credentials(conn *net.UnixConn) (who *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var credErr error
	err = raw.Control(func(fd uintptr) {
		who, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return who, errors.Join(err, credErr)
}

func dial(name string) (*net.UnixConn, error) {
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
}

// Close gives the claim back.
func (c *Claim) Close() error {
	return c.listener.Close()
}
