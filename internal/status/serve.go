package status

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// The requests: for a report, and for the place of the daemon.
	request, succeed = "status\n", "succeed\n"
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

// Answers are how a daemon answers.
type Answers struct {
	Report func(context.Context) Report
	// Successor is called with the connection of a process that is to take the daemon's place, and owns it if it returns
	// true; else the connection is closed.
	Successor func(net.Conn) bool
}

// Serve answers until l is closed; once ctx has ended it turns everybody away. It leaves nothing behind.
func Serve(ctx context.Context, l net.Listener, answers Answers) {
	ctx, stop := context.WithCancel(ctx)
	s := &server{Answers: answers, answering: make(chan struct{}, atOnce)}
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
	Answers
	answering chan struct{} // as many as are answered
}

// hungUp reports whether the other side, which has nothing to say for now, has gone: who was stopped for a while hears of
// processes that have given up meanwhile.
func hungUp(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond)) // fails only if closed, as the next one
	_, err := conn.Read(make([]byte, 1))
	_ = conn.SetReadDeadline(time.Time{})
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// exchange reads a request and answers it. What goes wrong is the other side's to notice.
func (s *server) exchange(ctx context.Context, conn net.Conn) {
	keep := false
	defer func() {
		if !keep {
			_ = conn.Close()
		}
	}()
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer release()
	_ = conn.SetReadDeadline(time.Now().Add(silence)) // fails only if closed
	line, err := bufio.NewReader(io.LimitReader(conn, int64(len(succeed)))).ReadString('\n')
	switch {
	case err != nil && line == "":
		return // it only looked whether somebody is here
	case line == succeed && release():
		keep = !hungUp(conn) && s.Successor(conn)
		return
	}
	select {
	case s.answering <- struct{}{}:
		defer func() { <-s.answering }()
	case <-ctx.Done():
		return
	}
	var a answer
	if line == request {
		r := s.Report(ctx)
		a.Report = &r
	} else {
		a.Error = "the requests are \"status\" and \"succeed\""
	}
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	_ = json.NewEncoder(conn).Encode(a)
}
