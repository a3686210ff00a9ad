package httpd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// retryEvery is the wait before an address that could not be listened at is tried again.
	retryEvery = 5 * time.Second
	// grace is how long answers under way may take when their server closes.
	grace = time.Second
)

// Config is what a Server serves, and where.
type Config struct {
	Name     string // what it is for: "health", "metrics"
	Address  string // IP:port, where an unspecified IP stands for both families; empty: nowhere
	Handler  http.Handler
	HardFail bool // not to be able to listen ends Run
	Log      *slog.Logger
	// Failed, if set, is told why Address cannot be listened at: once, until the reason is another; and nil once there is
	// none any more. Run's goroutine calls it.
	Failed func(error)
}

// Server is one HTTP server whose address may change while it runs.
type Server struct {
	name    string
	handler http.Handler
	log     *slog.Logger
	failed  func(error)
	retry   time.Duration
	moved   chan struct{} // has room for one

	mu   sync.Mutex // guards all following fields
	want place
	open *opened // nil: it does not listen

	told string // the reason last told; Run's alone
}

// place is where to listen, and whether it is vital.
type place struct {
	address  string
	hardFail bool
}

// opened is an address that is listened at.
type opened struct {
	address string
	socket  net.Listener
	server  *http.Server
	ended   <-chan error
}

// New makes a Server. It listens once it runs.
func New(c Config) *Server {
	s := &Server{
		name: c.Name, handler: c.Handler, log: c.Log, failed: c.Failed, retry: retryEvery,
		moved: make(chan struct{}, 1), want: place{c.Address, c.HardFail},
	}
	if s.failed == nil {
		s.failed = func(error) {}
	}
	return s
}

// Move changes the address (empty: listen nowhere) and what a failure means. It does not wait until that is done.
func (s *Server) Move(address string, hardFail bool) {
	s.mu.Lock()
	s.want = place{address, hardFail}
	s.mu.Unlock()
	select {
	case s.moved <- struct{}{}:
	default: // Run has yet to see an earlier call, and will see this one as well
	}
}

func (s *Server) opened() *opened {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Run listens and answers until ctx ends; the error is nil then. An address that cannot be listened at is tried again,
// unless failures are to be hard: then Run returns the first.
func (s *Server) Run(ctx context.Context) error {
	defer func() { s.replace(nil) }()
	for {
		want := s.wanted()
		err := s.follow(ctx, want.address)
		if err == nil {
			s.tell(nil)
			err = s.watch(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			continue
		}
		s.tell(err)
		if want.hardFail {
			return err
		}
		s.pause(ctx)
	}
}

func (s *Server) wanted() place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.want
}

// follow makes what is open what is wanted.
func (s *Server) follow(ctx context.Context, address string) error {
	has := s.opened()
	if has != nil && has.address == address {
		return nil
	}
	if address == "" {
		s.replace(nil)
		return nil
	}
	next, err := s.listen(ctx, address)
	if err != nil && has != nil {
		// The old address is no longer wanted, and may be what is in the way: 0.0.0.0:1 and 127.0.0.1:1 exclude each
		// other.
		s.replace(nil)
		next, err = s.listen(ctx, address)
	}
	if err != nil {
		return err
	}
	s.replace(next)
	s.log.Debug("server listens", "server", s.name, "address", address)
	return nil
}

// watch returns when Move was called or ctx ended. The error is why the server ended by itself.
func (s *Server) watch(ctx context.Context) error {
	var ended <-chan error // blocks if nothing is open
	if o := s.opened(); o != nil {
		ended = o.ended
	}
	select {
	case <-ctx.Done():
	case <-s.moved:
	case err := <-ended:
		s.replace(nil)
		return fmt.Errorf("%s server: %w", s.name, err)
	}
	return nil
}

// pause is the time before the next attempt. A new address is no reason to wait.
func (s *Server) pause(ctx context.Context) {
	timer := time.NewTimer(s.retry)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.moved:
	case <-timer.C:
	}
}

func (s *Server) listen(ctx context.Context, address string) (*opened, error) {
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s server: %w", s.name, err)
	}
	o := &opened{address: address, socket: socket}
	o.server, o.ended = Serve(socket, s.handler, s.log)
	return o, nil
}

// replace closes what is open for next, which may be nil.
func (s *Server) replace(next *opened) {
	s.mu.Lock()
	old := s.open
	s.open = next
	s.mu.Unlock()
	if old != nil {
		old.close()
	}
}

// close stops listening at once, and lets answers under way finish if that is soon.
func (o *opened) close() {
	ctx, stop := context.WithTimeout(context.Background(), grace)
	defer stop()
	// A server that has not begun to serve does not know of its socket yet, and the port may be wanted at once.
	_ = o.socket.Close()
	if err := o.server.Shutdown(ctx); err != nil {
		_ = o.server.Close() // whoever is still there has had time
	}
	for range o.ended { // until it has ended
	}
}

// tell reports a failure that is another than before, and the end of failures.
func (s *Server) tell(err error) {
	switch {
	case err == nil && s.told != "":
		if s.opened() != nil { // else nobody wants it to any more
			s.log.Info("server listens again", "server", s.name)
		}
		s.failed(nil)
		s.told = ""
	case err != nil && err.Error() != s.told:
		s.log.Error("server does not listen", "server", s.name, "error", err)
		s.failed(err)
		s.told = err.Error()
	}
}
