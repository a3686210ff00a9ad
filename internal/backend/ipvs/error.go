package ipvs

import (
	"errors"
	"slices"
	"syscall"
)

// isStale reports whether a refusal may come of the kernel not having what it is known to have.
func isStale(err error) bool {
	return errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESRCH) ||
		errors.Is(err, syscall.EADDRNOTAVAIL) || isGone(err)
}

// isRefusal reports whether the kernel took offence at what it was told, as against not having listened.
func isRefusal(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	deaf := []syscall.Errno{
		syscall.EPERM, syscall.EINTR, syscall.EBADF, syscall.ENOBUFS, syscall.EAGAIN, syscall.ENOTCONN, syscall.EPIPE,
	}
	return ok && !slices.Contains(deaf, errno)
}

// lacksScheduler reports whether the kernel did not make or change a virtual server because it has no such scheduler.
func lacksScheduler(o operation, err error) bool {
	return (o.verb == addServer || o.verb == setServer) && errors.Is(err, syscall.ENOENT)
}
