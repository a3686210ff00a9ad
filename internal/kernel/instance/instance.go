// Package instance keeps a second Sluice from working on the same network namespace.
//
// The mark is an abstract UNIX socket. The kernel keeps such names per network namespace, which is what two daemons
// would fight over, and lets go of them when the process ends, however it ends: no stale file is left to clean up.
//
// Invariant: at most one process per network namespace holds a [Claim].
package instance

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ErrRunning occurs when a Sluice already runs in this network namespace.
var ErrRunning = errors.New("another sluice is running in this network namespace")

// socketName is an abstract address; net writes its first byte, which is 0, as @.
const socketName = "@sluice"

// Claim is the right to work on a network namespace. It ends with Close or with the process.
type Claim struct {
	listener net.Listener
}

// Take claims the network namespace of the calling thread.
func Take() (*Claim, error) {
	l, err := net.Listen("unix", socketName)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w (it holds the socket %s)", ErrRunning, socketName)
	}
	if err != nil {
		return nil, fmt.Errorf("claim the network namespace: %w", err)
	}
	return &Claim{listener: l}, nil
}

// Close gives the claim back.
func (c *Claim) Close() error {
	return c.listener.Close()
}
