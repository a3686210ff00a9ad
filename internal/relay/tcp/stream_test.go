package tcp_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"sluice/internal/relay/tcp"
)

// modes are the ways that bytes can take.
var modes = map[string]tcp.Config{"splice": {}, "copy": {Pipes: -1}}

func eachMode(t *testing.T, f func(t *testing.T, c tcp.Config)) {
	for name, c := range modes {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			f(t, c)
		})
	}
}

func TestBytesArriveAsTheyWereSent(t *testing.T) {
	eachMode(t, func(t *testing.T, c tcp.Config) {
		r := newRig(t, c, endpoint(t, echo))
		client := r.dial(t)
		sent := make([]byte, 20<<20)
		_, _ = rand.Read(sent)
		go func() {
			_, _ = client.Write(sent)
			_ = client.CloseWrite()
		}()
		got, err := io.ReadAll(client)
		if err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("got %d bytes, %v; want %d, the same", len(got), err, len(sent))
		}
		n := r.Counts()
		if n.In != uint64(len(sent)) || n.Out != uint64(len(sent)) {
			t.Errorf("counted %d in, %d out; want %d", n.In, n.Out, len(sent))
		}
		want := map[bool]uint64{true: 0, false: uint64(2 * len(sent))}[c.Pipes == 0]
		if n.Copied != want {
			t.Errorf("%d bytes went through memory of the process, want %d", n.Copied, want)
		}
	})
}

// What one side has finished saying, the other one may still answer for as long as it likes.
func TestHalfClose(t *testing.T) {
	eachMode(t, func(t *testing.T, c tcp.Config) {
		at, conns := handed(t)
		r := newRig(t, c, at)

		client := r.dial(t)
		server := <-conns
		send(t, client, "question")
		_ = client.CloseWrite()
		receiveAll(t, server, "question")
		send(t, server, "answer")
		receive(t, client, "answer")
		send(t, server, " and more")
		_ = server.Close()
		receiveAll(t, client, " and more")

		client = r.dial(t)
		server = <-conns
		send(t, server, "banner")
		_ = server.CloseWrite()
		receiveAll(t, client, "banner")
		send(t, client, "late")
		receive(t, server, "late")
		_ = client.Close()
		receiveAll(t, server, "")
		until(t, "both have ended", func() bool { return r.Counts().Ended == 2 })
	})
}

func wantReset(t *testing.T, c net.Conn) {
	t.Helper()
	b, err := io.ReadAll(c)
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read %q, %v; want a reset", b, err)
	}
}

func TestResetIsPassedOn(t *testing.T) {
	eachMode(t, func(t *testing.T, c tcp.Config) {
		at, conns := handed(t)
		r := newRig(t, c, at)
		both := func() (client, server *net.TCPConn) {
			client = r.dial(t)
			server = <-conns
			send(t, client, "x")
			receive(t, server, "x")
			return client, server
		}
		reset := func(c *net.TCPConn) {
			_ = c.SetLinger(0)
			_ = c.Close()
		}

		client, server := both()
		reset(client)
		wantReset(t, server)

		client, server = both()
		reset(server)
		wantReset(t, client)

		client, server = both() // also when one way has ended
		_ = client.CloseWrite()
		receiveAll(t, server, "")
		reset(server)
		wantReset(t, client)
		until(t, "all have ended", func() bool { return r.Counts().Ended == 3 })
	})
}

// wantRefused asserts that a new connection is reset. It may be before the client has learnt that it is open.
func (r *rig) wantRefused(t *testing.T) {
	t.Helper()
	c, err := net.DialTimeout("tcp", r.addr, patience)
	switch {
	case err == nil:
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		wantReset(t, c)
	case !errors.Is(err, syscall.ECONNRESET):
		t.Fatal(err)
	}
}

// An endpoint that dies while a client sends: whatever call of the relay learns of it first, the client sees an error.
func TestEndpointDiesInMidStream(t *testing.T) {
	eachMode(t, func(t *testing.T, c tcp.Config) {
		at := endpoint(t, func(c *net.TCPConn) {
			_, _ = io.ReadFull(c, make([]byte, 100<<10))
			_ = c.SetLinger(0)
		})
		r := newRig(t, c, at)
		for range 200 {
			client := r.dial(t)
			wrote := make(chan error, 1)
			go func() {
				_, err := io.Copy(client, endless{})
				wrote <- err
			}()
			_, err := io.ReadAll(client)
			// The kernel tells only one of the two. After an orderly end it would have been a broken pipe.
			if err2 := <-wrote; !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err2, syscall.ECONNRESET) {
				t.Fatalf("read: %v; write: %v; want a reset", err, err2)
			}
			_ = client.Close()
		}
		until(t, "all have ended", func() bool { return r.Counts().Ended == 200 })
	})
}

// An endpoint that answers before it has read everything and then closes sends a reset after its answer. The client gets
// both.
func TestAnswerBeforeAResetIsDelivered(t *testing.T) {
	eachMode(t, func(t *testing.T, c tcp.Config) {
		at, conns := handed(t)
		r := newRig(t, c, at)
		for range 50 {
			client := r.dial(t)
			server := <-conns
			send(t, client, "a long request")
			_, _ = io.ReadFull(server, make([]byte, 1)) // the rest has come too
			send(t, server, "too large")
			_ = server.Close()
			b, err := io.ReadAll(client)
			if string(b) != "too large" || !errors.Is(err, syscall.ECONNRESET) {
				t.Fatalf("got %q, %v; want the answer and a reset", b, err)
			}
		}
	})
}

// What is cut off because its Service is gone is reset at both ends, also when one way, or the other, has ended.
func TestHalfClosedIsCut(t *testing.T) {
	noLeak(t)
	at, conns := handed(t)
	r := newRig(t, tcp.Config{}, at)
	for _, first := range []string{"client", "endpoint"} {
		client := r.dial(t)
		server := <-conns
		one, other := client, server
		if first == "endpoint" {
			one, other = server, client
		}
		_ = one.CloseWrite()
		receiveAll(t, other, "")
		if n := r.Cut(); n != 1 {
			t.Errorf("%d were cut, want 1", n)
		}
		wantReset(t, one)
		until(t, "the other end is reset", func() bool {
			_, err := other.Write([]byte("x"))
			return err != nil
		})
	}
	until(t, "both have ended", func() bool { return r.Counts().Ended == 2 })
}

// A sender that is gone is not waited for, though the receiver takes nothing of what it has sent.
func TestResetWhileTheReceiverDoesNotRead(t *testing.T) {
	eachMode(t, func(t *testing.T, c tcp.Config) {
		at, conns := handed(t)
		c.Look = 10 * time.Millisecond
		r := newRig(t, c, at)
		client := r.dial(t)
		server := <-conns
		_ = client.SetWriteDeadline(time.Now().Add(time.Second)) // all that fits is on its way then
		if _, err := io.Copy(client, endless{}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		_ = client.SetLinger(0)
		_ = client.Close()
		until(t, "it has ended", func() bool { return r.Counts().Ended == 1 })
		if _, err := io.Copy(io.Discard, server); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the receiver sees %v, want a reset", err)
		}
	})
}

// A receiver that does not read holds a pipe. When all pipes are held, others are served without.
func TestReceiversThatDoNotReadHoldUpNobody(t *testing.T) {
	noLeak(t)
	at, conns := handed(t)
	r := newRig(t, tcp.Config{Pipes: 2}, at)
	for range 4 {
		client := r.dial(t)
		<-conns
		before := r.Counts().In
		go func() { _, _ = io.Copy(client, endless{}) }()
		until(t, "bytes flow", func() bool { return r.Counts().In > before })
	}
	client := r.dial(t)
	server := <-conns
	send(t, client, "still here")
	receive(t, server, "still here")
	send(t, server, "me too")
	receive(t, client, "me too")
	until(t, "bytes were copied", func() bool { return r.Counts().Copied > 0 })
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// An endpoint that has closed and vanished: the client that forgets to close does not hold the connection.
func TestHalfOpenEndsWithTheOtherSide(t *testing.T) {
	noLeak(t)
	at, conns := handed(t)
	r := newRig(t, tcp.Config{}, at)
	client := r.dial(t)
	server := <-conns
	_ = server.CloseWrite()
	receiveAll(t, client, "")
	_ = server.SetLinger(0) // as after its FIN-WAIT is over
	_ = server.Close()
	until(t, "it has ended", func() bool { return r.Counts().Ended == 1 })
	if open := r.Counts().Open; open != 0 {
		t.Errorf("%d open", open)
	}
}
