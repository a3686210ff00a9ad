package iptexec

import (
	"context"
	"errors"

	"sluice/internal/kernel/nfnl"
)

// ErrNoGeneration occurs when the kernel cannot tell cheaply whether rules have changed: the legacy variant has no
// such number, its rules must be read and compared.
var ErrNoGeneration = errors.New("the legacy variant has no generation number")

// Generation returns the number of the present state of nf_tables in the network namespace of the calling thread. Any
// transaction makes a new one, also one of another program, in another table or of the other family; so an equal
// number means that nothing has changed. The error is [ErrNoGeneration] for the legacy variant.
func (t *Tools) Generation() (uint32, error) {
	if t.Variant == Legacy {
		return 0, ErrNoGeneration
	}
	conn, err := nfnl.Open()
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	return conn.Generation(context.Background()) // the kernel answers at once
}
