package httpd

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// enter opens n connections that say so much and no more, and stay until the test ends.
func enter(t *testing.T, n int, text string) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", "127.0.0.1:10256")
		if err == nil {
			_, err = io.WriteString(c, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
}

// Whoever takes places, and asks nothing or never comes to the end of it, holds up nobody.
func TestSilentClientsMakeRoom(t *testing.T) {
	for name, text := range map[string]string{"silent": "", "slow": "GET / HTTP/1.1\r\nHo"} {
		t.Run(name, func(t *testing.T) {
			r := begin(t, "127.0.0.1:10256", true, nil)
			until(t, "it listens", r.at("127.0.0.1:10256"))
			enter(t, 2*maxClients, text)
			began := time.Now()
			if !answers("127.0.0.1:10256") {
				t.Error("no answer")
			}
			if took := time.Since(began); took >= headerTimeout {
				t.Errorf("it took %s, which is until the others are given up", took)
			}
		})
	}
}

// Clients that are being answered are not sent away, and one for whom they leave no place waits.
func TestClientsBeingAnsweredStay(t *testing.T) {
	asked, ready := make(chan bool), make(chan bool)
	r := begin(t, "127.0.0.1:10256", true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- true
		<-ready
		_, _ = io.WriteString(w, "here")
	}))
	until(t, "it listens", r.at("127.0.0.1:10256"))
	got := make(chan bool)
	ask := func() { got <- answers("127.0.0.1:10256") }
	for range maxClients {
		go ask()
		<-asked
	}
	go ask()
	select {
	case <-asked:
		t.Error("one client more than allowed is being answered")
	case <-time.After(100 * time.Millisecond):
	}
	go func() {
		for range asked { // that one
		}
	}()
	close(ready)
	for range maxClients + 1 {
		if !<-got {
			t.Error("a client that was being answered, or waited, got no answer")
		}
	}
	close(asked)
}

// scarce is a listener that has no room until it is made.
type scarce struct {
	net.Listener
	next chan net.Conn
	room func() bool
}

func (s *scarce) Accept() (net.Conn, error) {
	if !s.room() {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return <-s.next, nil
}

// Too many open files are told once, and cost a silent client its connection.
func TestTooManyOpenFiles(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	var log strings.Builder
	tries := 0
	s := &scarce{Listener: socket, next: make(chan net.Conn, 2), room: func() bool { tries++; return tries == 1 || tries > 4 }}
	c := newCrowd(s, slog.New(slog.NewTextHandler(&log, nil)))
	silent, other := net.Pipe()
	s.next <- silent
	s.next <- silent
	for range 2 {
		if _, err := c.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the silent client sees %v, want the end of its connection", err)
	}
	if n := strings.Count(log.String(), "too many open files"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}
