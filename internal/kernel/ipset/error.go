package ipset

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
)

// Refusals of the kernel that callers tell apart. [syscall.ENOENT] is that of a set that is not there.
var (
	ErrExists      = errors.New("a set of this name, of another type or size, is there")
	ErrInUse       = errors.New("rules name the set")
	ErrFull        = errors.New("the set is full")
	ErrUnknownType = errors.New("the kernel has no sets of this type")
	ErrMismatch    = errors.New("the sets are not of one type")
	ErrAbsent      = errors.New("the kernel has no ipset")
)

// typeFull is IPSET_ERR_HASH_FULL, the first of the errors that are of a type's own.
const typeFull = nl.IPSET_ERR_TYPE_SPECIFIC

// meanings are the numbers of those that ipset has for itself.
var meanings = map[syscall.Errno]error{
	nl.IPSET_ERR_FIND_TYPE:      ErrUnknownType,
	nl.IPSET_ERR_BUSY:           ErrInUse,
	nl.IPSET_ERR_REFERENCED:     ErrInUse,
	nl.IPSET_ERR_EXIST_SETNAME2: ErrExists,
	nl.IPSET_ERR_TYPE_MISMATCH:  ErrMismatch,
	syscall.EEXIST:              ErrExists,
	typeFull:                    ErrFull,
}

// Error is a refusal.
type Error struct {
	Op    string // "create", "add to", …
	Set   string
	Entry string // as ipset save prints it; empty: it is about the set
	Err   error
}

// Error names what was to be done, and to what.
func (e *Error) Error() string {
	if e.Entry != "" {
		return fmt.Sprintf("ipset: %s %s: %s: %v", e.Op, e.Set, e.Entry, e.Err)
	}
	return fmt.Sprintf("ipset: %s %s: %v", e.Op, e.Set, e.Err)
}

// Unwrap is the reason: one of those above, or the number of the kernel's error.
func (e *Error) Unwrap() error { return e.Err }

func wrap(op, set string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Set: set, Err: explain(err)}
}

// explain finds the number of the kernel's error, and words for it.
func explain(err error) error {
	var refused *netlink.OpError
	number, ok := errors.AsType[syscall.Errno](err)
	switch {
	case !errors.As(err, &refused) || !ok:
		return err
	case meanings[number] != nil:
		return meanings[number]
	case number >= nl.IPSET_ERR_PRIVATE:
		return nl.IPSetError(number)
	}
	return number
}
