package relay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// ErrUnsupported is the reason of a BindError for a protocol that there is no relay for, which is SCTP: Go has no
// sockets for it.
var ErrUnsupported = errors.New("not supported by the userspace proxy")

// ErrStopped is what a Server says that was told to stop or has given its sockets away.
var ErrStopped = errors.New("the relay has stopped")

// BindError is a Target that is not listened at. Err is the kernel's reason, or [ErrUnsupported].
type BindError struct {
	Key    Key
	Listen netip.AddrPort
	Err    error
}

// Error names the Target, where it should have listened, and why it does not.
func (e *BindError) Error() string {
	return fmt.Sprintf("listen at %s/%s for %s: %v", e.Listen, e.Key.Port.Protocol, e.Key, e.Err)
}

// Unwrap is the reason.
func (e *BindError) Unwrap() error { return e.Err }

// InUse reports whether another socket has the port, so that a Target might do better with another one.
func (e *BindError) InUse() bool { return errors.Is(e.Err, syscall.EADDRINUSE) }

// reason strips what package net says and a BindError says already.
func reason(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
