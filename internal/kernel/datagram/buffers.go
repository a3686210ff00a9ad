package datagram

import "sync"

// Size holds every datagram: the length in a UDP header has 16 bits.
const Size = 1<<16 - 1

// Buffer is room for one datagram.
type Buffer [Size]byte

// Buffers lends buffers. [NewBuffers] makes it. It is safe for concurrent use.
type Buffers struct {
	lent chan struct{}
	free sync.Pool // what nobody needs for a while is returned to the runtime
}

// NewBuffers makes a pool of which at most n are lent at a time.
func NewBuffers(n int) *Buffers {
	return &Buffers{lent: make(chan struct{}, n), free: sync.Pool{New: func() any { return new(Buffer) }}}
}

// Take waits until fewer than n are lent, and lends one.
func (p *Buffers) Take() *Buffer {
	p.lent <- struct{}{}
	return p.free.Get().(*Buffer)
}

// Give takes a lent one back.
func (p *Buffers) Give(b *Buffer) {
	p.free.Put(b)
	<-p.lent
}
