package tcp_test

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/internal/relay/count"
	"sluice/internal/relay/tcp"
)

// hold opens connections until one is refused, and returns those that are relayed.
func hold(t *testing.T, addr string) (held []*net.TCPConn) {
	t.Helper()
	for {
		client, err := net.DialTimeout("tcp", addr, patience)
		if err != nil {
			return held
		}
		t.Cleanup(func() { _ = client.Close() })
		_ = client.SetDeadline(time.Now().Add(patience))
		if _, err := client.Write([]byte("x")); err != nil {
			return held
		}
		if _, err := client.Read(make([]byte, 1)); err != nil {
			return held
		}
		held = append(held, client.(*net.TCPConn))
	}
}

// At the limit, what is new is refused at once, and what is open stays.
func TestLimit(t *testing.T) {
	noLeak(t)
	r := newRig(t, tcp.Config{Connections: 50}, endpoint(t, echo))
	held := hold(t, r.addr)
	for range 20 {
		r.wantRefused(t)
	}
	until(t, "all 21 were counted", func() bool { return r.Counts().Refused[count.Limit] == 21 })
	for _, c := range held {
		send(t, c, "y")
		receive(t, c, "y")
	}
	_ = held[0].Close()
	until(t, "there is room again", func() bool { return r.Counts().Open == int64(len(held)-1) })
	if again := hold(t, r.addr); len(again) != 1 {
		t.Errorf("%d new connections for one that ended", len(again))
	}
	if lines := strings.Count(r.log.String(), "too many are open"); lines != 1 {
		t.Errorf("%d lines of log, want 1", lines)
	}
}

// However many Services take what they can get, the next one gets something too.
func TestOneServiceDoesNotStarveAnother(t *testing.T) {
	noLeak(t)
	at := endpoint(t, echo)
	r := newRig(t, tcp.Config{Connections: 200}, at)
	var got []int
	for range 3 {
		socket := listen(t, "127.0.0.1:0")
		l := r.Serve(socket, tcp.Service{Name: "greedy", Picker: r.picker})
		t.Cleanup(l.Stop)
		got = append(got, len(hold(t, socket.Addr().String())))
	}
	if got[0] != 160 {
		t.Errorf("a Service alone got %d of 200, want four fifths", got[0])
	}
	for i := range got[1:] {
		if got[i+1] == 0 || got[i+1] > got[i] {
			t.Errorf("Services got %v: the next gets less, and not nothing", got)
		}
	}
}

// With no file to be had, clients are refused and not left waiting; and once there are files, they are served.
func TestOutOfFiles(t *testing.T) {
	noLeak(t)
	r := newRig(t, tcp.Config{}, endpoint(t, echo))
	var files []*os.File
	free := func() {
		for _, f := range files {
			_ = f.Close()
		}
		files = nil
	}
	t.Cleanup(free)

	before := r.dial(t) // so that everybody has begun to accept
	send(t, before, "x")
	receive(t, before, "x")

	// The client's end of a connection takes a file of this process too, so the connection comes first.
	raw, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	client := os.NewFile(uintptr(raw), "client")
	t.Cleanup(func() { _ = client.Close() })
	limitFiles(t, 200)
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		files = append(files, f)
	}
	to := addrPort(t, r.addr)
	if err := syscall.Connect(raw, &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Read(raw, make([]byte, 1)); err != syscall.ECONNRESET {
		t.Errorf("read: %v, want a reset", err)
	}
	until(t, "it was counted", func() bool { return r.Counts().Refused[count.Resources] > 0 })
	free()
	for _, c := range []net.Conn{before, r.dial(t)} {
		send(t, c, "y")
		receive(t, c, "y")
	}
}

// limitFiles lowers how many files this process may open, until the test ends.
func limitFiles(t *testing.T, n uint64) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) })
}
