package nfnl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

var (
	// ErrTooLarge is what Commit returns for a batch beyond [Conn.Limit]. Nothing of it was written.
	ErrTooLarge = errors.New("batch too large for the socket")

	// ErrUnanswered occurs when the kernel's answer is missing or was lost for want of memory. Whether a batch was
	// written is not known then.
	ErrUnanswered = errors.New("no answer of the kernel")

	// ErrInterrupted is what Dump returns if something changed meanwhile: what was read may be a mixture.
	ErrInterrupted = errors.New("dump interrupted by a change")

	// ErrLost is what Receive returns if the kernel dropped notifications because the buffer was full.
	ErrLost = errors.New("notifications lost")
)

var errMalformed = errors.New("malformed netlink message")

// Error is one refusal of the kernel.
type Error struct {
	Seq     uint32        // of the message refused; that of the batch begin if it is the batch as a whole
	Offset  int           // of the attribute at fault from the start of the message's header; 0 if the kernel names none
	Errno   syscall.Errno // also what errors.Is compares
	Message string        // the kernel's own words, if it has any
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "message %d", e.Seq)
	if e.Offset != 0 {
		fmt.Fprintf(&b, ", byte %d", e.Offset)
	}
	fmt.Fprintf(&b, ": %v", e.Errno)
	if e.Message != "" {
		fmt.Fprintf(&b, ": %s", e.Message)
	}
	return b.String()
}

// Unwrap returns the number of the error.
func (e *Error) Unwrap() error { return e.Errno }

// Errors are all the refusals of one batch, at least one, that of the batch as a whole first and then in the order of
// its messages. Not every message in it is at fault: once the rules would run in a circle, for example, the kernel
// refuses whatever follows.
type Errors []*Error

// Error tells the first one and how many follow: the later ones are often consequences.
func (e Errors) Error() string {
	if len(e) == 1 {
		return e[0].Error()
	}
	return fmt.Sprintf("%v (and %d more)", e[0], len(e)-1)
}

// Unwrap returns each of them.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i := range e {
		all[i] = e[i]
	}
	return all
}

// refusal reads a message of type NLMSG_ERROR. It is nil for an acknowledgement.
func refusal(m message) (*Error, error) {
	if len(m.data) < 4+headerLen {
		return nil, errMalformed
	}
	number := int32(binary.NativeEndian.Uint32(m.data))
	if number == 0 {
		return nil, nil
	}
	e := &Error{Seq: m.seq, Errno: syscall.Errno(-number)}
	// All that a capped message has of the one refused is the header.
	const explained = unix.NLM_F_ACK_TLVS | unix.NLM_F_CAPPED
	if m.flags&explained == explained {
		e.explain(m.data[4+headerLen:])
	}
	return e, nil
}

// explain adds what the attributes of an extended acknowledgement say.
func (e *Error) explain(attributes []byte) {
	for kind, value, rest, ok := attribute(attributes); ok; kind, value, rest, ok = attribute(rest) {
		switch {
		case kind == unix.NLMSGERR_ATTR_MSG:
			e.Message = unix.ByteSliceToString(value)
		case kind == unix.NLMSGERR_ATTR_OFFS && len(value) == 4:
			e.Offset = int(binary.NativeEndian.Uint32(value))
		}
	}
}
