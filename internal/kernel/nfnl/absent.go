package nfnl

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Absent reports whether the kernel says that it knows no nf_tables. Whatever else may be wrong is told by those who try.
func Absent() bool {
	err := look()
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP)
}

// Forbidden is what the kernel says to a process that may not see or change the rules of its network namespace; nil: it
// may. The kernel asks before it looks whether it has nf_tables, so the answer holds for other ways to rules, too.
func Forbidden() error {
	if err := look(); errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}

// look asks the kernel for as little as there is to ask.
func look() error {
	conn, err := Open()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Generation(context.Background()) // the kernel answers at once
	return err
}
