package tcp

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"sluice/internal/kernel/splice"
)

// stream moves bytes in one direction, from one socket to another.
type stream struct {
	source, sink *net.TCPConn
	from, to     syscall.RawConn
	pipes        *pipes
	moved        func(n int, copied bool)

	pipe   *splice.Pipe // nil while the stream waits for its source, and when bytes are copied
	buffer *buffer      // for bytes that are copied; nil while it waits
	urgent bool         // the one byte in the buffer is
	fills  int          // how often the source has given something since the stream waited for it
	got    int          // bytes that the source gave last; 0: its end
	put    int          // bytes that the sink took last
	err    error        // of the last attempt
	stuck  atomic.Bool  // the sink takes nothing

	// What the poller calls when a socket is ready, made once: made for each call, they would cost memory each time.
	fill, drain, send, take func(fd uintptr) bool
}

func newStream(source, sink *net.TCPConn, p *pipes, moved func(int, bool)) (*stream, error) {
	from, err := source.SyscallConn()
	if err != nil {
		return nil, err
	}
	to, err := sink.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &stream{source: source, sink: sink, from: from, to: to, pipes: p, moved: moved, fills: askFirst}
	s.fill, s.drain, s.send, s.take = s.fillPipe, s.drainPipe, s.sendBuffer, s.takeBuffer
	return s, nil
}

// run moves bytes until the source ends, which is no error, or either socket fails.
func (s *stream) run() (readErr, writeErr error) {
	defer s.release()
	for {
		if err := s.try(s.from.Read, s.fill); err != nil || s.got == 0 {
			return err, nil
		}
		if s.pipe == nil {
			readErr, writeErr = s.copy()
		} else {
			writeErr = s.splice()
		}
		if readErr != nil || writeErr != nil {
			return readErr, writeErr
		}
	}
}

// try calls f until it reports true, and waits for the socket in between. It returns the error of either.
func (s *stream) try(wait func(func(uintptr) bool) error, f func(uintptr) bool) error {
	s.err = nil
	if err := wait(f); err != nil {
		return err
	}
	return s.err
}

// askFirst is after how many fills a source is asked whether it has more: most often it has not, and to ask costs no more
// than a fill in vain. One that goes on is not asked again.
const askFirst = 1

// fillPipe gets bytes from the source, or the news that there will be none.
func (s *stream) fillPipe(fd uintptr) bool {
	if s.fills == askFirst && s.idle(fd) {
		return false
	}
	s.fills++
	if s.pipe == nil {
		s.pipe = s.pipes.take()
	}
	for tries := 0; s.pipe != nil && tries < 2; tries++ {
		s.got, s.err = s.pipe.Fill(fd)
		switch {
		case s.got > 0, s.err != syscall.EAGAIN && !splice.AtMark(fd): // bytes, the end or a failure
			return true
		case s.err == syscall.EAGAIN && s.idle(fd):
			return false
		}
	}
	s.release() // what is there, though not for a pipe, is urgent
	return s.peek(fd)
}

// idle reports whether the source has nothing to tell. Nothing is held then.
func (s *stream) idle(fd uintptr) bool {
	if splice.Ready(fd) {
		return false
	}
	s.release()
	s.err, s.fills = nil, 0
	return true
}

// splice empties the pipe into the sink.
func (s *stream) splice() error {
	for s.pipe.Held() > 0 {
		if err := s.try(s.to.Write, s.drain); err != nil {
			return err
		}
		s.moved(s.put, false)
	}
	return nil
}

func (s *stream) drainPipe(fd uintptr) bool {
	s.put, s.err = s.pipe.Drain(fd)
	if s.put == 0 && s.err == nil {
		s.err = io.ErrShortWrite
	}
	return !s.sticks()
}

// sticks reports whether the sink took nothing, and has that known.
func (s *stream) sticks() bool {
	is := s.err == syscall.EAGAIN
	if s.stuck.Load() != is { // so that it is seldom written
		s.stuck.Store(is)
	}
	return is
}

// waits reports whether the last attempt has to be made again once the socket is ready, and if so holds nothing until
// then.
func (s *stream) waits() bool {
	if s.err != syscall.EAGAIN {
		return false
	}
	s.err, s.fills = nil, 0
	s.release()
	return true
}

// release gives back what the stream holds.
func (s *stream) release() {
	if s.pipe != nil {
		s.pipes.give(s.pipe)
		s.pipe = nil
	}
	if s.buffer != nil {
		s.pipes.buffers.Put(s.buffer)
		s.buffer = nil
	}
}
