package nfnl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dump asks for all objects that a request matches and hands each message to the function. The data are only valid
// until it returns; its error ends the dump.
//
// The error is [ErrInterrupted] if something changed meanwhile: the messages handed over are no consistent state, and
// the caller, who knows how to forget them, may ask again. Dumps of sets are quadratic in the kernel; what an ended
// dump leaves unread is read, and thrown away, before the next request.
func (c *Conn) Dump(ctx context.Context, kind uint16, payload []byte, each func(kind uint16, data []byte) error) error {
	return c.ask(ctx, kind, unix.NLM_F_DUMP, payload, answer{each: each})
}

// Sample is Dump for those who would rather have a mixture than ask again: it goes on if something changes meanwhile. What
// others add or remove then may be missing or told of, and some objects beside it may be missing or told of twice; each
// is as it was at one moment.
func (c *Conn) Sample(ctx context.Context, kind uint16, payload []byte, each func(kind uint16, data []byte) error) error {
	return c.ask(ctx, kind, unix.NLM_F_DUMP, payload, answer{each: each, mixed: true})
}

// Get asks for single objects or elements by name or key and hands each message of the answer to the function. The data
// are only valid until it returns. What is not there is an [Error] with ENOENT. The error is [ErrInterrupted] if
// something changed between two messages of the answer.
func (c *Conn) Get(ctx context.Context, kind uint16, payload []byte, each func(kind uint16, data []byte) error) error {
	return c.ask(ctx, kind, 0, payload, answer{each: each})
}

func (c *Conn) ask(ctx context.Context, kind, flags uint16, payload []byte, a answer) error {
	if err := c.settle(ctx); err != nil {
		return err
	}
	c.seq++
	c.out = appendRequest(c.out[:0], kind, flags, c.seq, payload)
	c.unread = true
	if err := c.socket.send(c.out); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	for !a.done {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := c.socket.receive(c.in, false)
		switch {
		case errors.Is(err, unix.EAGAIN) && a.begun && flags&unix.NLM_F_DUMP == 0:
			a.done = true // only a dump has a message that says so
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS):
			return fmt.Errorf("%w: %w", ErrUnanswered, err)
		case err != nil:
			return err
		}
		err = a.take(c.in[:n])
		c.unread = !a.done
		if err != nil {
			return err
		}
	}
	return nil
}

// answer hands over the messages that answer one request.
type answer struct {
	each        func(kind uint16, data []byte) error
	mixed       bool // objects of several states will do
	begun, done bool
	generation  uint16 // the lower half of the number of the state that the first message is of
}

// take hands over the messages of a datagram.
func (a *answer) take(datagram []byte) error {
	for len(datagram) > 0 {
		m, rest, ok := cut(datagram)
		if !ok {
			return errMalformed
		}
		datagram = rest
		a.done = m.kind == unix.NLMSG_DONE || m.kind == unix.NLMSG_ERROR
		switch {
		case m.kind == unix.NLMSG_ERROR:
			return answerError(m)
		case m.flags&unix.NLM_F_DUMP_INTR != 0 && !a.mixed:
			return ErrInterrupted
		case m.kind == unix.NLMSG_DONE:
			return doneError(m)
		case len(m.data) < nfgenmsgLen:
			return errMalformed
		case !a.consistent(m):
			return ErrInterrupted
		}
		if err := a.each(m.kind, m.data); err != nil {
			return err
		}
	}
	return nil
}

// consistent reports whether a message is of the same state as those before. The kernel sets no NLM_F_DUMP_INTR in
// dumps of elements, but every message names its generation.
func (a *answer) consistent(m message) bool {
	generation := binary.BigEndian.Uint16(m.data[2:])
	if !a.begun {
		a.begun, a.generation = true, generation
	}
	return a.mixed || generation == a.generation
}

// answerError is the error of an answer that is one, not an acknowledgement.
func answerError(m message) error {
	refused, err := refusal(m)
	switch {
	case err != nil:
		return err
	case refused == nil:
		return nil
	}
	return refused
}

// doneError is the error that ended a dump, if one did.
func doneError(m message) error {
	if len(m.data) < 4 {
		return nil
	}
	if number := int32(binary.NativeEndian.Uint32(m.data)); number < 0 {
		return &Error{Seq: m.seq, Errno: syscall.Errno(-number)}
	}
	return nil
}

// settle throws away what an earlier request left unread. The kernel puts the next part of a dump into the buffer when
// one is taken out, so an empty buffer is the end.
func (c *Conn) settle(ctx context.Context) error {
	for c.unread {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := c.socket.receive(c.in, false)
		switch {
		case errors.Is(err, unix.EAGAIN):
			c.unread = false
		case err != nil && !errors.Is(err, unix.ENOBUFS):
			return err
		}
	}
	return ctx.Err()
}
