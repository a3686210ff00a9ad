package tcp

import (
	"net"
	"os"
	"sync"

	"sluice/internal/kernel/splice"
)

// shedAtOnce bounds how many are refused before others get their turn.
const shedAtOnce = 256

// spare is an open file that can be closed when no more can be opened, so that a connection can be accepted in its place
// and be refused, instead of leaving the client waiting for nothing.
type spare struct {
	mu   sync.Mutex
	file *os.File // nil: there is none
}

func newSpare() *spare {
	s := &spare{}
	s.open()
	return s
}

func (s *spare) open() { s.file, _ = os.Open(os.DevNull) } // without it, clients wait for the next attempt to accept

// shed refuses what waits at l, and returns how many those were.
func (s *spare) shed(l *net.TCPListener) (n int) {
	raw, err := l.SyscallConn()
	if err != nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.file.Close()
	defer s.open()
	_ = raw.Control(func(fd uintptr) { // l may be closed by now
		for n < shedAtOnce && splice.Shed(fd) == nil {
			n++
		}
	})
	return n
}

func (s *spare) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.file.Close()
}
