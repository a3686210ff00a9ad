package convert

import (
	"fmt"
	"strings"
)

// Severity says what a Problem means for the object.
type Severity uint8

const (
	// Error is something written that is not in force, because it is wrong.
	Error Severity = iota
	// Warning is something in force, though perhaps not as its writer meant it.
	Warning
	// Notice is something that is right, and that Sluice has no use for, or that has less effect than one may think.
	Notice
)

// String is the severity in lower case.
func (s Severity) String() string {
	return [...]string{"error", "warning", "notice"}[min(s, Notice)]
}

// Problem is what is wrong or remarkable about one object.
type Problem struct {
	// Field is a path such as "spec.ports[0].port"; empty for the object as a whole.
	Field    string
	Message  string
	Severity Severity
	// Skipped is an Error that takes the whole object away.
	Skipped bool
}

// notes collects the Problems of one object.
type notes struct {
	list []Problem
}

func (n *notes) add(s Severity, field, format string, args ...any) {
	n.list = append(n.list, Problem{Field: field, Message: fmt.Sprintf(format, args...), Severity: s})
}

func (n *notes) error(field, format string, args ...any) { n.add(Error, field, format, args...) }

func (n *notes) warn(field, format string, args ...any) { n.add(Warning, field, format, args...) }

func (n *notes) notice(field, format string, args ...any) { n.add(Notice, field, format, args...) }

// wrong notes an Error that takes the whole object away.
type wrong struct {
	*notes
	found bool
}

func (w *wrong) skip(field, format string, args ...any) {
	w.found = true
	w.list = append(w.list, Problem{Field: field, Message: fmt.Sprintf(format, args...), Skipped: true})
}

// at is the path of element i of a list.
func at(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// first is the first of the messages that a validation gives, or "".
func first(messages []string) string {
	return strings.Join(messages[:min(1, len(messages))], "")
}
