package nfnl

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// Absent reports whether the kernel says that it knows no nf_tables. Whatever else may be wrong is told by those who try.
func Absent() bool {
	conn, err := Open()
	if err != nil {
		return errors.Is(err, unix.EPROTONOSUPPORT)
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Generation(context.Background()) // the kernel answers at once
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP)
}
