package status

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	request = "status\n"
	// silence is how long it may take to ask. An honest process asks at once.
	silence = time.Second
	// patience is how long it may take to read the answer. An honest process reads it in milliseconds.
	patience = 5 * time.Second
	// waiting is how many may be about to ask, and atOnce how many are answered at the same time; others wait.
	waiting, atOnce = 256, 4
	// pause is the wait after a connection could not be accepted, as happens when there are too many open files.
	pause = 100 * time.Millisecond
)

// answer is what goes back: either of them.
type answer struct {
	Error  string  `json:"error,omitempty"`
	Report *Report `json:"report,omitempty"`
}

// Serve answers with what report returns, until l is closed; once ctx has ended it turns everybody away. It leaves
// nothing behind.
func Serve(ctx context.Context, l net.Listener, report func(context.Context) Report) {
	ctx, stop := context.WithCancel(ctx)
	s := &server{report: report, answering: make(chan struct{}, atOnce)}
	var exchanges sync.WaitGroup
	defer exchanges.Wait()
	defer stop()
	places := make(chan struct{}, waiting)
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(pause)
			continue
		}
		select {
		case places <- struct{}{}:
			exchanges.Go(func() {
				defer func() { <-places }()
				s.exchange(ctx, conn)
			})
		case <-ctx.Done():
			_ = conn.Close() // nothing was said
		}
	}
}

type server struct {
	report    func(context.Context) Report
	answering chan struct{} // as many as are answered
}

// exchange reads a request and answers it. What goes wrong is the other side's to notice.
func (s *server) exchange(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(silence)) // fails only if closed
	line, err := bufio.NewReader(io.LimitReader(conn, int64(len(request)))).ReadString('\n')
	if err != nil && line == "" {
		return // it only looked whether somebody is here
	}
	select {
	case s.answering <- struct{}{}:
		defer func() { <-s.answering }()
	case <-ctx.Done():
		return
	}
	var a answer
	if line == request {
		r := s.report(ctx)
		a.Report = &r
	} else {
		a.Error = "the only request is \"status\""
	}
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	_ = json.NewEncoder(conn).Encode(a)
}
