package tcp

import (
	"errors"
	"syscall"

	"sluice/internal/kernel/splice"
)

// buffer is what bytes are copied through for want of a pipe, or since they are urgent.
type buffer [32 << 10]byte

// keepUrgent is for every socket that bytes come from, before any has come.
func keepUrgent(_, _ string, socket syscall.RawConn) (err error) {
	closed := socket.Control(func(fd uintptr) { err = splice.KeepUrgent(fd) })
	return errors.Join(err, closed)
}

// peek reads what the source has, and leaves it there. A byte that is urgent (MSG_OOB) goes alone.
func (s *stream) peek(fd uintptr) bool {
	s.buffer = s.pipes.buffers.Get().(*buffer)
	s.got, s.err = splice.Peek(fd, s.buffer[:])
	// To ask afterwards is right: what is marked later has come later.
	if s.urgent = s.got > 0 && splice.AtMark(fd); s.urgent {
		s.got = 1
	}
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
	if s.buffer == nil { // it has waited
		s.stuck.Store(false)
		return true
	}
	if s.urgent {
		s.put, s.err = splice.SendUrgent(fd, s.buffer[0])
	} else {
		s.put, s.err = splice.Send(fd, s.buffer[:s.got])
	}
	s.sticks()
	return !s.waits()
}

func (s *stream) takeBuffer(fd uintptr) bool {
	s.err = splice.Discard(fd, s.buffer[:s.put])
	return true
}
