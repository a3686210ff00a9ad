package status

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// listen serves report at a socket of the test's own until the test ends, and checks that nothing is left then.
func listen(t *testing.T, report func(context.Context) Report) (dial func() net.Conn, end func()) {
	t.Helper()
	return listenFor(t, Answers{Report: report})
}

// listenFor is listen for any request.
func listenFor(t *testing.T, answers Answers) (dial func() net.Conn, end func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	go func() { defer close(done); Serve(ctx, l, answers) }()
	end = func() {
		stop()
		_ = l.Close() // it may be closed already
		<-done
	}
	t.Cleanup(func() { end(); goleak.VerifyNone(t) })
	return func() net.Conn {
		t.Helper()
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}, end
}

func TestAsk(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	count := uint64(7)
	want := Report{
		Mode: "nftables", Node: "node-a", Since: noon, Healthy: true,
		Applied:  &Applied{Last: noon.Add(time.Minute), LastSeconds: 0.25, Times: 3, Failures: 1, Written: 20, Restored: 2},
		Problems: []string{"Service shop/web: no <good>"},
		Ports: []Port{
			{Namespace: "shop", Name: "web", Port: "http", Number: 80, Protocol: "TCP", Family: "IPv4", State: "done", Since: noon, Frontends: 2, Endpoints: 3, Connections: &count},
			{Namespace: "shop", Name: "bad", Protocol: "UDP", Family: "IPv6", State: "error", Since: noon, Error: "no such file or directory"},
		},
	}
	dial, _ := listen(t, func(context.Context) Report { return want })
	for range 2 * atOnce {
		got, err := Ask(dial())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestUnknownRequestIsRefused(t *testing.T) {
	dial, _ := listen(t, func(context.Context) Report { t.Error("it was answered"); return Report{} })
	for _, text := range []string{"\n", "shutdown\n", strings.Repeat("x", 1000)} {
		conn := dial()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(conn); !strings.Contains(string(got), `"error"`) {
			t.Errorf("%.10q is answered by %q", text, got)
		}
	}
}

// Those who come and say nothing, or never read, hold up neither the others nor the end.
func TestStuckClientsHoldUpNothing(t *testing.T) {
	large := Report{Problems: []string{strings.Repeat("long ", 1<<20)}}
	dial, end := listen(t, func(context.Context) Report { return large })
	_ = dial().Close()
	_ = dial() // says nothing
	if _, err := io.WriteString(dial(), request); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(dial()); err != nil {
		t.Error(err)
	}
	for range 3 * atOnce {
		_ = dial()
	}
	if _, err := Ask(dial()); err != nil {
		t.Error(err)
	}
	for range 2 * waiting {
		_ = dial()
	}
	end() // without waiting for anybody's patience to end: nobody else closes these connections
}

func TestAskTellsOfSilence(t *testing.T) {
	client, server := net.Pipe()
	go func() {
		_, _ = io.ReadAtLeast(server, make([]byte, len(request)), len(request))
		_ = server.Close()
	}()
	if _, err := Ask(client); err == nil || !strings.Contains(err.Error(), "ask the daemon") {
		t.Errorf("error %v", err)
	}
}

// The connection of a successor is the daemon's to use or to refuse, and stays open after the door is shut.
func TestSucceed(t *testing.T) {
	came := make(chan net.Conn, 2)
	first := true
	dial, end := listenFor(t, Answers{Successor: func(c net.Conn) bool {
		defer func() { first = false }()
		if first {
			came <- c
		}
		return first
	}})
	one := dial()
	if err := Succeed(one); err != nil {
		t.Fatal(err)
	}
	kept := <-came
	t.Cleanup(func() { _ = kept.Close() })
	two := dial()
	if err := Succeed(two); err != nil {
		t.Fatal(err)
	}
	if n, err := two.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("a second successor reads %d bytes, error %v", n, err)
	}
	end()
	if _, err := kept.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(one, make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

// A daemon that was stopped for a while does not make room for a process that has given up meanwhile.
func TestSuccessorThatHungUp(t *testing.T) {
	here, there := net.Pipe()
	asked := make(chan struct{})
	go func() { defer close(asked); _ = Succeed(there); _ = there.Close() }()
	text := make([]byte, len(succeed))
	if _, err := io.ReadFull(here, text); err != nil {
		t.Fatal(err)
	}
	<-asked
	s := server{Answers: Answers{Successor: func(net.Conn) bool {
		t.Error("the place is offered to nobody")
		return false
	}}}
	s.exchange(t.Context(), said{here, bytes.NewReader(text)})
}

// said is a connection by which something has come.
type said struct {
	net.Conn
	text *bytes.Reader
}

func (s said) Read(b []byte) (int, error) { return io.MultiReader(s.text, s.Conn).Read(b) }
