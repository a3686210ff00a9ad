package tcp

import (
	"sync"

	"sluice/internal/kernel/splice"
)

// idlePipes is how many are kept open for the next who needs one.
const idlePipes = 64

// pipes hands out a bounded number of pipes, and buffers for those who get none. A buffer is never held while its stream
// waits, so there are no more in use than threads.
type pipes struct {
	max     int
	buffers sync.Pool // of *buffer

	mu   sync.Mutex
	used int // handed out
	idle []*splice.Pipe
}

func newPipes(most int) *pipes {
	return &pipes{max: most, buffers: sync.Pool{New: func() any { return new(buffer) }}}
}

// take hands out an empty pipe; nil if there is none to be had.
func (p *pipes) take() *splice.Pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used >= p.max {
		return nil
	}
	if last := len(p.idle) - 1; last >= 0 {
		pipe := p.idle[last]
		p.idle = p.idle[:last]
		p.used++
		return pipe
	}
	pipe, err := splice.NewPipe()
	if err != nil { // too many open files: the bytes get to the other side without
		return nil
	}
	p.used++
	return pipe
}

// give takes a pipe back. One that is not empty is of no more use.
func (p *pipes) give(pipe *splice.Pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
	if pipe.Held() != 0 || len(p.idle) == idlePipes {
		pipe.Close()
		return
	}
	p.idle = append(p.idle, pipe)
}

// close lets go of the idle ones. All are.
func (p *pipes) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pipe := range p.idle {
		pipe.Close()
	}
	p.idle, p.max = nil, 0
}
