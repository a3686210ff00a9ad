package iptexec

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ErrLocked occurs when another program has held the lock of the legacy variant for longer than the wait.
var ErrLocked = errors.New("another program holds the xtables lock")

// ErrTransient occurs when the kernel refused for a reason that may have gone the next time: memory, buffers, a
// signal, or another writer. ErrLocked is transient too.
var ErrTransient = errors.New("the kernel was busy")

// ErrTooLarge occurs with the nft variant when a table's changes exceed what one message may hold. Root sends any
// size; an ordinary user, also as root of a user namespace, is held to net.core.wmem_default: 212,992 bytes, some 350
// rules with comments (iptables 1.8.9 raises the limit by SO_SNDBUFFORCE alone). The legacy variant has no such limit.
var ErrTooLarge = errors.New("too many changes at once for an ordinary user")

// RestoreError is a refusal by iptables-restore. No table of the text from the one with the offending line on was
// changed.
type RestoreError struct {
	Family   Family
	Variant  Variant
	Line     int    // in the text given to Restore, from 1; 0 when iptables does not tell
	Text     string // the offending line; "COMMIT" when the kernel refused the table as a whole
	Message  string // in iptables' own words
	ExitCode int
}

// Error says what was refused, where, and why.
func (e *RestoreError) Error() string {
	at := ""
	if e.Line > 0 {
		at = fmt.Sprintf(" at line %d (%s)", e.Line, e.Text)
	}
	return fmt.Sprintf("restore %s rules (%s)%s: %s", e.Family, e.Variant, at, e.Message)
}

// Is makes the error match [ErrLocked], [ErrTransient] and [ErrTooLarge].
func (e *RestoreError) Is(target error) bool {
	locked := strings.Contains(e.Message, "holding the xtables lock") || strings.Contains(e.Message, "Can't lock ")
	switch target {
	case ErrLocked:
		return locked
	case ErrTransient:
		return locked || e.transient()
	case ErrTooLarge:
		return strings.Contains(e.Message, "Message too long")
	}
	return false
}

func (e *RestoreError) transient() bool {
	for _, text := range []string{
		"Resource temporarily unavailable", "Interrupted system call", "No buffer space available", "Cannot allocate memory",
	} {
		if strings.Contains(e.Message, text) {
			return true
		}
	}
	return false
}

// explain reads what the program wrote to its standard error: input is what it was given, with the commands of
// readTableFirst, which the error does not count.
func explain(f Family, v Variant, input []byte, failed *failure) *RestoreError {
	e := &RestoreError{Family: f, Variant: v, Message: message(failed.stderr), ExitCode: failed.status}
	lines := strings.Split(string(input), "\n")
	at := lineNumber(failed.stderr)
	if at > 0 && at <= len(lines) {
		at = missingChain(e.Message, lines, at)
		e.Text = lines[at-1]
		e.Line = at - inserted(lines[:at])
	}
	return e
}

// lineNumber finds the line in one of the forms that the versions and variants use, all with "line" and a number:
// "Error occurred at line: 3", "line 3 failed", "COMMIT expected at line 3", "line 3: RULE_APPEND failed (…): …".
func lineNumber(stderr string) int {
	m := regexp.MustCompile(`(?:Error occurred at line: |\bline )(\d+)`).FindAllStringSubmatch(stderr, -1)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[0][1]) // a number beyond int is out of the text as well
	return n
}

// message strips a program's standard error of its name, of the line, which RestoreError has, and of how to get help.
func message(stderr string) string {
	program := regexp.MustCompile(`^ip6?tables[\w-]*(?: v\S+ \(\w+\))?: ?|^xtables[\w-]*: ?`)
	noise := regexp.MustCompile(`^(?:Error occurred at line: \d+|Try .* for more information\.)$|^line \d+: `)
	var kept []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		for program.MatchString(line) {
			line = program.ReplaceAllString(line, "")
		}
		if line = noise.ReplaceAllString(line, ""); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "; ")
}

// missingChain returns the line that jumps to a chain that does not exist, for which the nft variant blames COMMIT.
func missingChain(message string, lines []string, at int) int {
	m := regexp.MustCompile(`Chain '(.+)' does not exist`).FindStringSubmatch(message)
	if m == nil {
		return at
	}
	for i, line := range lines[:at] {
		if strings.HasSuffix(line, "-j "+m[1]) || strings.HasSuffix(line, "-g "+m[1]) {
			return i + 1
		}
	}
	return at
}

func inserted(lines []string) int {
	n := 0
	for _, line := range lines {
		if line+"\n" == listTable {
			n++
		}
	}
	return n
}
