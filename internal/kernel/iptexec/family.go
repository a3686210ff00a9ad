package iptexec

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// LockWait is how long another program may hold the lock of the legacy variant, as kube-proxy has it.
const LockWait = 5 * time.Second

// ErrNoFamily occurs when the kernel lacks a family's tables. The family is then left out.
var ErrNoFamily = errors.New("this kernel has no such tables, the family is left out")

// noFamily is what the programs say then; they have no status of their own for it.
var noFamily = regexp.MustCompile(`Table does not exist|[Pp]rotocol not supported|not supported by protocol`)

// AsNoFamily makes an error of a program [ErrNoFamily] if that is what it says.
func AsNoFamily(err error) error {
	if err != nil && noFamily.MatchString(err.Error()) {
		return fmt.Errorf("%w: %w", ErrNoFamily, err)
	}
	return err
}
