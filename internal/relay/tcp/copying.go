package tcp

import "sluice/internal/kernel/splice"

// buffer is what bytes are copied through for want of a pipe.
type buffer [32 << 10]byte

// peek reads what the source has, and leaves it there.
func (s *stream) peek(fd uintptr) bool {
	s.buffer = s.pipes.buffers.Get().(*buffer)
	s.got, s.err = splice.Peek(fd, s.buffer[:])
	return !s.waits()
}

// copy sends what was peeked at, and takes off the source what the sink took. If the sink takes nothing it waits, and
// then there is nothing to take: what the source has is to be read again.
func (s *stream) copy() (readErr, writeErr error) {
	s.put = 0
	if err := s.try(s.to.Write, s.send); err != nil {
		return nil, err
	}
	if s.put > 0 {
		s.moved(s.put, true)
		readErr = s.try(s.from.Read, s.take)
	}
	s.release()
	return readErr, nil
}

func (s *stream) sendBuffer(fd uintptr) bool {
	if s.buffer == nil {
		return true // it has waited
	}
	s.put, s.err = splice.Send(fd, s.buffer[:s.got])
	return !s.waits()
}

func (s *stream) takeBuffer(fd uintptr) bool {
	s.err = splice.Discard(fd, s.buffer[:s.put])
	return true
}
