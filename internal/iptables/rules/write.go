package rules

import (
	"bufio"
	"io"
	"strings"
)

// Declaration is the line that makes a chain in iptables-restore, or empties it there with --noflush: ":NAME - [0:0]".
func (c *Chain) Declaration() string {
	policy := c.Policy
	if policy == "" {
		policy = "-"
	}
	return ":" + c.Name + " " + policy + " [0:0]"
}

// Line is the line that appends the rule to a chain: "-A CHAIN rule".
func (r Rule) Line(chain string) string {
	if r == "" {
		return "-A " + chain
	}
	return "-A " + chain + " " + string(r)
}

// Write writes the whole ruleset in the form of iptables-save, with counters of zero. Parse reads it back.
func (rs *Ruleset) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, t := range rs.Tables {
		t.write(b)
	}
	return b.Flush()
}

// String is what Write writes.
func (rs *Ruleset) String() string {
	var b strings.Builder
	_ = rs.Write(&b) // a Builder does not fail
	return b.String()
}

// write leaves its errors to the Flush of b, which keeps the first one.
func (t *Table) write(b *bufio.Writer) {
	line := func(s string) {
		_, _ = b.WriteString(s)
		_ = b.WriteByte('\n')
	}
	line("*" + t.Name)
	for _, c := range t.Chains {
		line(c.Declaration())
	}
	for _, c := range t.Chains {
		for _, r := range c.Rules {
			line(r.Line(c.Name))
		}
	}
	line("COMMIT")
}
