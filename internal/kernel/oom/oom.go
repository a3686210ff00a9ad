// Package oom reads and writes this process's oom_score_adj: how much sooner or later than others the kernel ends it when
// memory runs out, from -1000 (never) to 1000 (first).
//
// Invariant: a score that is already right is not written, since lowering one takes a right that a process may lack.
package oom

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const path = "/proc/self/oom_score_adj"

// Score returns the score of this process.
func Score() (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read oom_score_adj: %w", reason(err))
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read oom_score_adj: %w", err)
	}
	return score, nil
}

// SetScore gives this process, and the programs it starts from now on, a score. One that is lower than the process began
// with needs CAP_SYS_RESOURCE: without it the error is an fs.ErrPermission.
func SetScore(score int) error {
	old, err := Score()
	if err != nil || old == score {
		return err
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(score)), 0o600); err != nil {
		return fmt.Errorf("set oom_score_adj from %d to %d: %w", old, score, reason(err))
	}
	return nil
}

// reason strips the path, which says nothing that the name does not.
func reason(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err
	}
	return err
}
