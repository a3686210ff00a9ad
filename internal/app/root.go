package app

import (
	"fmt"

	"sluice/internal/kernel/nfnl"
)

// needRoot is for verbs that work on this kernel, before they begin: what a process without the right to do so would learn
// of the kernel, bit by bit, is nothing about the kernel. The error is an os.ErrPermission.
func needRoot(verb string) error {
	if err := nfnl.Forbidden(); err != nil {
		return fmt.Errorf("%s needs root (CAP_NET_ADMIN): %w", verb, err)
	}
	return nil
}
