package iptables

import (
	"fmt"
	"slices"
	"strings"

	"sluice/internal/plan"
)

// LineError is a line that iptables-restore did not take, with the Service port that it is for.
type LineError struct {
	Line string       // as written
	Port *plan.PortID // nil: no Service port's alone
	Err  error
}

// Error names the Service port; the program's own error tells the line.
func (e *LineError) Error() string {
	who := "rule"
	if e.Port != nil {
		who = fmt.Sprintf("rule of Service port %s (%s)", e.Port, e.Port.Protocol)
	}
	return fmt.Sprintf("%s: %v", who, e.Err)
}

// Unwrap is the program's own error.
func (e *LineError) Unwrap() error { return e.Err }

// blame finds whose line of d err is about. Lines count from 1; 0 is unknown.
func (f *family) blame(err error, d delta, number int) error {
	all := lines(string(d.text()))
	if number < 1 || number > len(all) {
		return err
	}
	line := all[number-1]
	return &LineError{line, f.owner(line), err}
}

// owner is the Service port that a line is for.
func (f *family) owner(line string) *plan.PortID {
	chain := strings.TrimPrefix(strings.Fields(line)[0], ":")
	if words := strings.Fields(line); strings.HasPrefix(line, "-") && len(words) > 1 {
		chain = words[1]
	}
	at := slices.IndexFunc(f.fragments, func(g *fragment) bool {
		return slices.Contains(g.chains, chain) || slices.ContainsFunc(g.lines[:], func(text string) bool {
			return strings.Contains("\n"+text, "\n"+line+"\n")
		})
	})
	if at < 0 {
		return nil
	}
	return &f.fragments[at].id
}
