package instance_test

import (
	"errors"
	"io"
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sluice/internal/kernel/instance"
	"sluice/internal/testkit/nstest"
)

// answer has a claim say "here" to everybody whom it accepts.
func answer(t *testing.T, c *instance.Claim) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := c.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "here")
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = c.Close(); <-done })
}

func said(t *testing.T, conn net.Conn) string {
	t.Helper()
	text, err := io.ReadAll(conn)
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDialReachesTheHolder(t *testing.T) {
	nstest.Require(t)
	if _, err := instance.Dial(); !errors.Is(err, instance.ErrNotRunning) {
		t.Errorf("while nobody runs: %v", err)
	}
	answer(t, take(t))
	conn, err := instance.Dial()
	if err != nil {
		t.Fatal(err)
	}
	if got := said(t, conn); got != "here" {
		t.Errorf("the holder says %q", got)
	}
	if _, err := instance.Take(); !errors.Is(err, instance.ErrRunning) {
		t.Errorf("a second one: %v", err)
	}
}

// A stranger is never taken for Sluice, whether it still holds the first name or has gone.
func TestDialPassesStrangersOver(t *testing.T) {
	stranger := listenAsNobody(t)
	if _, err := instance.Dial(); !errors.Is(err, instance.ErrNotRunning) {
		t.Errorf("while only a stranger listens: %v", err)
	}
	answer(t, take(t))
	for range 2 {
		conn, err := instance.Dial()
		if err != nil {
			t.Fatal(err)
		}
		if got := said(t, conn); got != "here" {
			t.Errorf("it says %q", got)
		}
		_ = stranger.Close()
	}
}

// Another user cannot ask: by Dial it learns why, and by a connection of its own it learns nothing.
func TestOtherUsersAreTurnedAway(t *testing.T) {
	nstest.RequireRoot(t, "in the namespace of an ordinary user there are no other users")
	answer(t, take(t))
	type result struct {
		text           string
		dialed, direct error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good, so that the thread ends with the goroutine
		var r result
		defer func() { done <- r }()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), nobody, ^uintptr(0)); errno != 0 {
			r.direct = errno
			return
		}
		_, r.dialed = instance.Dial()
		conn, err := net.Dial("unix", "@sluice")
		if r.direct = err; err == nil {
			text, _ := io.ReadAll(conn) // being cut off is as good as the end
			r.text = string(text)
		}
	}()
	r := <-done
	if r.direct != nil || r.text != "" {
		t.Errorf("a connection of its own: %q, %v", r.text, r.direct)
	}
	if !errors.Is(r.dialed, instance.ErrForbidden) {
		t.Errorf("Dial: %v", r.dialed)
	}
}
