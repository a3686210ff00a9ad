package httpd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// run is a Server that runs, and what it told.
type run struct {
	*Server
	stop  func()
	ended chan error

	mu     sync.Mutex
	log    bytes.Buffer
	failed []error
}

// Write is for the log.
func (r *run) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

func (r *run) told() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func begin(t *testing.T, address string, hardFail bool, handler http.Handler) *run {
	t.Helper()
	nstest.Require(t)
	before := goleak.IgnoreCurrent()
	r := &run{ended: make(chan error, 1)}
	if handler == nil {
		handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	}
	r.Server = New(Config{
		Name: "health", Address: address, HardFail: hardFail, Handler: handler, Log: slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Failed: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.failed = append(r.failed, err)
		},
	})
	r.retry = 10 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() { r.ended <- r.Run(ctx); close(r.ended) }()
	t.Cleanup(func() {
		stop()
		for range r.ended {
		}
		if r.opened() != nil {
			t.Error("it has ended: want that it listens nowhere")
		}
		goleak.VerifyNone(t, before)
	})
	return r
}

// until waits for what other goroutines bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("it never happens: " + what)
}

func (r *run) at(address string) func() bool {
	return func() bool { o := r.opened(); return o != nil && o.socket.Addr().String() == address }
}

func answers(address string) bool {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + address)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return err == nil && string(b) == "here"
}

func TestMoves(t *testing.T) {
	r := begin(t, "127.0.0.1:10256", true, nil)
	until(t, "it listens", r.at("127.0.0.1:10256"))
	for _, step := range []struct {
		address, local string
		yes, no        []string
	}{
		{"127.0.0.1:10256", "127.0.0.1:10256", []string{"127.0.0.1:10256"}, []string{"[::1]:10256", "127.0.0.2:10256"}},
		{"[::1]:10256", "[::1]:10256", []string{"[::1]:10256"}, []string{"127.0.0.1:10256"}},
		// The next two exclude each other, so the one has to be closed first.
		{"0.0.0.0:10256", "[::]:10256", []string{"127.0.0.1:10256", "127.0.0.2:10256", "[::1]:10256"}, nil},
		{"127.0.0.2:10256", "127.0.0.2:10256", []string{"127.0.0.2:10256"}, []string{"127.0.0.1:10256", "[::1]:10256"}},
		{"127.0.0.1:10257", "127.0.0.1:10257", []string{"127.0.0.1:10257"}, []string{"127.0.0.2:10256"}},
	} {
		r.Move(step.address, true)
		until(t, step.address, r.at(step.local))
		for _, a := range step.yes {
			if !answers(a) {
				t.Errorf("listens at %s: no answer at %s", step.address, a)
			}
		}
		for _, a := range step.no {
			until(t, "no answer at "+a, func() bool { return !answers(a) })
		}
	}
	r.Move("", true)
	until(t, "it listens nowhere", func() bool { return r.opened() == nil && !answers("127.0.0.1:10257") })
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("Run = %v, want nil after its context ended", err)
	}
}

// To move to where it is already disturbs no client.
func TestStays(t *testing.T) {
	r := begin(t, "127.0.0.1:10256", false, nil)
	until(t, "it listens", r.at("127.0.0.1:10256"))
	socket := r.opened().socket
	r.Move("127.0.0.1:10256", true)
	r.Move("127.0.0.1:10256", false)
	until(t, "it has seen the calls", func() bool { return len(r.moved) == 0 })
	r.Move("127.0.0.1:10257", false)
	until(t, "it moves", r.at("127.0.0.1:10257"))
	if _, err := socket.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept = %v, want the old socket closed", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := strings.Count(r.log.String(), "server listens\""); n != 2 {
		t.Errorf("it listened %d times, want once at each address:\n%s", n, r.log.String())
	}
}

// taken listens where the Server should.
func taken(t *testing.T, address string) net.Listener {
	t.Helper()
	nstest.Require(t)
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestHardFail(t *testing.T) {
	taken(t, "127.0.0.1:10256")
	r := begin(t, "127.0.0.1:10256", true, nil)
	err := <-r.ended
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "health server: listen tcp 127.0.0.1:10256") {
		t.Errorf("Run = %v, want the server, the address and the kernel's reason", err)
	}
	if got := r.told(); len(got) != 1 || !errors.Is(got[0], syscall.EADDRINUSE) {
		t.Errorf("told %v, want the failure", got)
	}
}

func TestTellsOnceAndTriesAgain(t *testing.T) {
	other := taken(t, "127.0.0.1:10256")
	r := begin(t, "127.0.0.1:10256", false, nil)
	until(t, "it tells", func() bool { return len(r.told()) == 1 })
	r.Move("192.0.2.1:10256", false)
	until(t, "it tells of the other address", func() bool { return len(r.told()) == 2 })
	time.Sleep(5 * r.retry) // some more attempts
	if err := r.told()[1]; !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("told %v, want that there is no such address", err)
	}
	_ = other.Close()
	r.Move("127.0.0.1:10256", false)
	until(t, "it listens", r.at("127.0.0.1:10256"))
	r.mu.Lock()
	defer r.mu.Unlock()
	if log := r.log.String(); strings.Count(log, "level=ERROR") != 2 || strings.Count(log, "listens again") != 1 {
		t.Errorf("log:\n%s\nwant each failure once, and its end", log)
	}
}

// An address that is given up is the end of its failure, and no news of a server that listens.
func TestAddressGivenUp(t *testing.T) {
	var log bytes.Buffer
	s := New(Config{Name: "health", Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.tell(syscall.EADDRINUSE)
	s.tell(nil)
	s.tell(syscall.EADDRINUSE)
	if strings.Contains(log.String(), "listens again") || strings.Count(log.String(), "level=ERROR") != 2 {
		t.Errorf("log:\n%s\nwant the failure, each time that it is new, alone", &log)
	}
}

// Nobody calls Move: the time alone brings the next attempt.
func TestTriesAgainByItself(t *testing.T) {
	other := taken(t, "127.0.0.1:10256")
	r := begin(t, "127.0.0.1:10256", false, nil)
	until(t, "it tells", func() bool { return len(r.told()) == 1 })
	_ = other.Close()
	until(t, "it listens", r.at("127.0.0.1:10256"))
	until(t, "it tells that it does", func() bool { told := r.told(); return len(told) == 2 && told[1] == nil })
}

// A server whose socket breaks is made anew, and the failure told.
func TestBrokenSocket(t *testing.T) {
	r := begin(t, "127.0.0.1:10256", false, nil)
	until(t, "it listens", r.at("127.0.0.1:10256"))
	_ = r.opened().socket.Close()
	until(t, "it tells, and that it is over", func() bool { return len(r.told()) == 2 })
	until(t, "it answers", func() bool { return answers("127.0.0.1:10256") })
}

// An answer under way is finished when the server closes.
func TestFinishesAnswers(t *testing.T) {
	asked, finish := make(chan struct{}), make(chan struct{})
	r := begin(t, "127.0.0.1:10256", true, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-finish
		_, _ = io.WriteString(w, "here")
	}))
	until(t, "it listens", r.at("127.0.0.1:10256"))
	got := make(chan bool)
	go func() { got <- answers("127.0.0.1:10256") }()
	<-asked
	r.stop()
	until(t, "it takes no new clients", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:10256")
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(finish)
	if !<-got {
		t.Error("the answer under way was cut off")
	}
}

// A client may neither hold the server up with slow headers nor send endless ones.
func TestLimits(t *testing.T) {
	r := begin(t, "127.0.0.1:10256", true, nil)
	until(t, "it listens", r.at("127.0.0.1:10256"))
	server := r.opened().server
	for name, d := range map[string]time.Duration{
		"ReadHeaderTimeout": server.ReadHeaderTimeout, "ReadTimeout": server.ReadTimeout,
		"WriteTimeout": server.WriteTimeout, "IdleTimeout": server.IdleTimeout,
	} {
		if d == 0 {
			t.Errorf("%s is not set", name)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:10256", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X", strings.Repeat("x", 2*maxHeader))
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("long headers: status %d", resp.StatusCode)
	}
}

// More clients than there are places are answered one after another, though none of them leaves by itself.
func TestOneAnswer(t *testing.T) {
	r := begin(t, "127.0.0.1:10256", true, OneAnswer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "here")
	})))
	until(t, "it listens", r.at("127.0.0.1:10256"))
	for i := range maxClients + 10 {
		c, err := net.Dial("tcp", "127.0.0.1:10256")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(c); err != nil || !strings.Contains(string(text), "Connection: close") || !strings.HasSuffix(string(text), "here") {
			t.Fatalf("client %d: %q, error %v", i, text, err)
		}
	}
}
