package nfnl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Commit has the kernel execute a batch as one transaction: all of it or nothing. The batch is what one system call
// sends: a batch begin, messages with their sequence numbers, a batch end. A batch without messages is done at once.
//
// What the kernel refuses is [Errors]: one for each message at fault, which may be fewer than are wrong if one hides
// another, and one for the batch as a whole if that failed at the end. The error is [ErrTooLarge] beyond Limit, and
// [ErrUnanswered] if it is unknown whether the batch was written.
//
// The context ends only what has not begun. Commit sets a flag in the header of the last message before the batch end:
// the kernel acknowledges that one after a well-formed batch, and forgets the acknowledgement of a batch that it cannot
// read or that a signal cut short, of which it would otherwise say nothing.
func (c *Conn) Commit(ctx context.Context, batch []byte) error {
	f, err := frameOf(batch)
	if err != nil {
		return err
	}
	return c.transact(ctx, batch, f)
}

// Check is Commit without the batch end: the kernel tries every message, says what it refuses, and undoes all. The batch
// is one for Commit. It shows what a kernel can do.
func (c *Conn) Check(ctx context.Context, batch []byte) error {
	f, err := frameOf(batch)
	if err != nil {
		return err
	}
	return c.transact(ctx, batch[:f.end], f)
}

func (c *Conn) transact(ctx context.Context, batch []byte, f frame) error {
	switch {
	case len(batch) > c.limit:
		return fmt.Errorf("%d bytes, limit %d: %w", len(batch), c.limit, ErrTooLarge)
	case f.last == 0:
		return ctx.Err()
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	last := batch[f.last:]
	binary.NativeEndian.PutUint16(last[6:], binary.NativeEndian.Uint16(last[6:])|unix.NLM_F_ACK)
	if err := c.socket.send(batch); err != nil {
		return fmt.Errorf("send batch of %d bytes: %w", len(batch), err)
	}
	return c.outcome(binary.NativeEndian.Uint32(last[8:]))
}

// outcome reads all answers to a batch whose last message has the given number.
func (c *Conn) outcome(last uint32) error {
	c.unread = true
	var refused Errors
	acked, lost := false, false
	for c.unread {
		n, err := c.socket.receive(c.in, false)
		switch {
		case errors.Is(err, unix.EAGAIN):
			c.unread = false
		case errors.Is(err, unix.ENOBUFS):
			lost = true // of answers; the transaction is over in any case
		case err != nil:
			return err
		}
		for b := c.in[:n]; len(b) > 0; {
			m, rest, ok := cut(b)
			if !ok {
				return errMalformed
			}
			b = rest
			if m.kind != unix.NLMSG_ERROR {
				continue // an echo, if the batch asks for it
			}
			e, err := refusal(m)
			switch {
			case err != nil:
				return err
			case e != nil:
				refused = append(refused, e)
			case m.seq == last:
				acked = true
			}
		}
	}
	switch {
	case len(refused) > 0:
		return refused
	case lost || !acked:
		return ErrUnanswered
	}
	return nil
}

// frame is where the last message of a batch and its batch end begin. There is no message if last is 0.
type frame struct{ last, end int }

// frameOf checks what the kernel would abort without a word.
func frameOf(batch []byte) (f frame, err error) {
	for at := 0; at < len(batch); {
		m, rest, ok := cut(batch[at:])
		switch next := len(batch) - len(rest); {
		case !ok, len(m.data) < nfgenmsgLen:
			return frame{}, fmt.Errorf("batch, byte %d: %w", at, errMalformed)
		case (at == 0) != (m.kind == unix.NFNL_MSG_BATCH_BEGIN):
			return frame{}, fmt.Errorf("batch, byte %d: a batch has one batch begin, at its start", at)
		case (next == len(batch)) != (m.kind == unix.NFNL_MSG_BATCH_END):
			return frame{}, fmt.Errorf("batch, byte %d: a batch has one batch end, at its end", at)
		case next == len(batch):
			f.end = at
			return f, nil
		default:
			f.last, at = at, next
		}
	}
	return frame{}, errors.New("empty batch")
}
