package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// NS is a network namespace, kept alive by an open file. Close it when done; it lives on while processes or sockets
// are in it.
type NS struct {
	file *os.File
}

// New makes a network namespace that has no name and no interface but the loopback, which is up.
// The calling goroutine stays in the namespace it is in.
func New() (*NS, error) {
	var ns *NS
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("create network namespace: %w", explain(err))
		}
		if err := upLoopback(); err != nil {
			return err
		}
		var err error
		ns, err = Current()
		return err
	})
	return ns, err
}

// Current returns the network namespace of the calling thread, which is that of the process outside of [NS.Do].
func Current() (*NS, error) {
	return Open("/proc/thread-self/ns/net")
}

// Open returns the network namespace that path stands for, such as /proc/PID/ns/net or /run/netns/NAME.
func Open(path string) (*NS, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	return &NS{file: f}, nil
}

// Fd returns the file descriptor that stands for the namespace, valid until Close.
func (ns *NS) Fd() int {
	return int(ns.file.Fd())
}

// Close lets go of the namespace.
func (ns *NS) Close() error {
	return ns.file.Close()
}

// Do runs f inside the namespace, on a thread that runs nothing else meanwhile, and returns its error.
// Goroutines that f starts are not in the namespace; sockets and files that f opens remain usable after it.
func (ns *NS) Do(f func() error) error {
	return onThread(func() error {
		if err := enter(ns.file); err != nil {
			return err
		}
		return f()
	})
}

// onThread runs f on a locked thread and then returns the thread to its namespace. A thread that cannot return is
// left locked, so that it ends with its goroutine.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		result := errors.New("the function ended its goroutine instead of returning")
		defer func() { done <- result }()
		runtime.LockOSThread()
		origin, err := Current()
		if err != nil {
			runtime.UnlockOSThread()
			result = err
			return
		}
		defer func() {
			if enter(origin.file) == nil {
				runtime.UnlockOSThread()
			}
			_ = origin.Close()
		}()
		result = f()
	}()
	return <-done
}

func enter(f *os.File) error {
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	return nil
}

// upLoopback sets the loopback interface of the calling thread's namespace up; the kernel then gives it its addresses.
func upLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}
