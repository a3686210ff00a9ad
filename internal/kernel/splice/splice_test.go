package splice_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"sluice/internal/kernel/splice"
)

// pair is a connection: both its ends.
func pair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	for _, c := range []net.Conn{client, server} {
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	}
	return client.(*net.TCPConn), server.(*net.TCPConn)
}

// with calls f with c's descriptor: again when c is readable, as long as f has to wait.
func with(t *testing.T, c *net.TCPConn, f func(fd uintptr) error) error {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var result error
	err = raw.Read(func(fd uintptr) bool {
		result = f(fd)
		return !errors.Is(result, syscall.EAGAIN)
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func write(t *testing.T, c *net.TCPConn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func TestPipe(t *testing.T) {
	client, in := pair(t)
	out, server := pair(t)
	p, err := splice.NewPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	fill := func() (n int) {
		if err := with(t, in, func(fd uintptr) (err error) { n, err = p.Fill(fd); return err }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	write(t, client, "hello")
	if n := fill(); n != 5 || p.Held() != 5 {
		t.Errorf("got %d, holds %d", n, p.Held())
	}
	if err := with(t, out, func(fd uintptr) error { _, err := p.Drain(fd); return err }); err != nil || p.Held() != 0 {
		t.Errorf("%v, holds %d", err, p.Held())
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(server, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	_ = client.CloseWrite()
	if n := fill(); n != 0 {
		t.Errorf("%d bytes after the end", n)
	}
}

// Without a pipe, bytes stay with their source until they have been sent.
func TestPeek(t *testing.T) {
	client, server := pair(t)
	write(t, client, "hello world")
	b := make([]byte, 11)
	peek := func() (n int) {
		if err := with(t, server, func(fd uintptr) (err error) { n, err = splice.Peek(fd, b); return err }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 2 {
		if n := peek(); string(b[:n]) != "hello world" {
			t.Fatalf("got %q", b[:n])
		}
	}
	if err := with(t, server, func(fd uintptr) error { return splice.Discard(fd, b[:6]) }); err != nil {
		t.Fatal(err)
	}
	if n := peek(); string(b[:n]) != "world" {
		t.Errorf("got %q after 6 bytes were taken off", b[:n])
	}
	if err := with(t, server, func(fd uintptr) error { _, err := splice.Send(fd, b[:5]); return err }); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, b[:5]); err != nil || string(b[:5]) != "world" {
		t.Errorf("%q, %v", b[:5], err)
	}
}

// An orderly end leaves a connection that is to be closed; a reset leaves none.
func TestClosed(t *testing.T) {
	closed := func(c *net.TCPConn) (is bool) {
		_ = with(t, c, func(fd uintptr) error { is = splice.Closed(fd); return nil })
		return is
	}
	client, server := pair(t)
	_ = client.CloseWrite()
	if _, err := server.Read(make([]byte, 1)); err != io.EOF || closed(server) {
		t.Errorf("after an orderly end: %v, closed %v", err, closed(server))
	}
	client, server = pair(t)
	_ = client.SetLinger(0)
	_ = client.Close()
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) || !closed(server) {
		t.Errorf("after a reset: %v, closed %v", err, closed(server))
	}
}

func TestOpenFiles(t *testing.T) {
	n, err := splice.OpenFiles()
	if err != nil || n < 16 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestErrorsNameTheCall(t *testing.T) {
	p, err := splice.NewPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	_, err = p.Fill(0)
	if !errors.Is(err, syscall.EBADF) || err.Error() != "splice: bad file descriptor" {
		t.Errorf("got %v", err)
	}
}
