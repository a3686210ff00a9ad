package udp

import (
	"errors"
	"net"
	"syscall"
	"time"

	"sluice/internal/kernel/datagram"
)

// pause is how long reading rests after an error of the socket, such as a machine without memory.
const pause = 10 * time.Millisecond

// read takes what clients send until reading is stopped.
func (l *Listener) read() {
	for !l.stopped.Load() {
		// What else the socket has to tell is told by the attempt to read.
		if err := datagram.Wait(l.socket.raw); errors.Is(err, net.ErrClosed) {
			return
		}
		for l.readBatch() {
		}
	}
}

// readBatch reports whether there is more to read. The batch is returned after each, so that a Listener which is never
// idle takes turns with others.
func (l *Listener) readBatch() (more bool) {
	b := l.engine.batches.take()
	defer l.engine.batches.give(b)
	n, err := l.socket.read(b.messages[:])
	if err != nil {
		if !errors.Is(err, syscall.EAGAIN) && !l.stopped.Load() {
			time.Sleep(pause)
		}
		return false
	}
	for i := range n {
		d, ok := b.incoming(i, l.socket)
		if !ok {
			l.stats.drop(Malformed)
			continue
		}
		l.take(d)
	}
	return n == batchSize && !l.stopped.Load()
}

// take passes a datagram on by its session. One whose endpoint has refused an earlier datagram is ended, and this one
// begins the next.
func (l *Listener) take(d incoming) {
	for {
		s := l.find(d.key)
		if s == nil {
			l.begin(d)
			return
		}
		if s.send(d) {
			return
		}
		s.refused()
		l.forget(s)
	}
}

func (l *Listener) find(k key) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sessions[k]
}
