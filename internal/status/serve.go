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
	// patience is how long an exchange may take. An honest one takes milliseconds.
	patience = 5 * time.Second
	// atOnce is how many exchanges there are at once; others wait.
	atOnce = 4
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
	var exchanges sync.WaitGroup
	defer exchanges.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	places := make(chan struct{}, atOnce)
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
				exchange(ctx, conn, report)
			})
		case <-ctx.Done():
			_ = conn.Close() // nothing was said
		}
	}
}

// exchange reads a request and answers it. What goes wrong is the other side's to notice.
func exchange(ctx context.Context, conn net.Conn, report func(context.Context) Report) {
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	line, err := bufio.NewReader(io.LimitReader(conn, int64(len(request)))).ReadString('\n')
	if err != nil && line == "" {
		return // it only looked whether somebody is here
	}
	var a answer
	if line == request {
		r := report(ctx)
		a.Report = &r
	} else {
		a.Error = "the only request is \"status\""
	}
	_ = json.NewEncoder(conn).Encode(a)
}
