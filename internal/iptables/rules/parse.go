package rules

import (
	"fmt"
	"io"
	"strings"
)

// SyntaxError is a line that is not iptables-save text.
type SyntaxError struct {
	Line   int    // from 1
	Text   string // the line
	Reason string
}

// Error is one line of text that quotes the beginning of the faulty one.
func (e *SyntaxError) Error() string {
	text := e.Text
	if len(text) > 120 {
		text = text[:120] + "…"
	}
	return fmt.Sprintf("line %d: %s: %q", e.Line, e.Reason, text)
}

// Parse reads the output of iptables-save or ip6tables-save, of either variant, with or without counters. A table or
// chain that comes again is continued. What is wrong with the text is told as a *SyntaxError.
func Parse(r io.Reader) (*Ruleset, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	p := parser{rules: &Ruleset{}}
	for line := range strings.SplitSeq(string(text), "\n") {
		p.number++
		if reason := p.line(strings.Trim(line, " \t\r")); reason != "" {
			return nil, &SyntaxError{Line: p.number, Text: line, Reason: reason}
		}
	}
	if p.table != nil {
		return nil, &SyntaxError{Line: p.number, Reason: "the text ends inside table " + p.table.Name + ", without COMMIT"}
	}
	return p.rules, nil
}

type parser struct {
	rules  *Ruleset
	table  *Table // the open one
	number int
}

// line takes in one line and returns what is wrong with it, or nothing.
func (p *parser) line(line string) string {
	switch {
	case line == "", line[0] == '#':
		return ""
	case line[0] == '*':
		return p.open(line[1:])
	case p.table == nil:
		return "outside of a table"
	case line == "COMMIT":
		p.table = nil
		return ""
	case line[0] == ':':
		return p.declare(line[1:])
	}
	return p.append(line)
}

func (p *parser) open(name string) string {
	if p.table != nil {
		return "table " + p.table.Name + " has no COMMIT"
	}
	if name == "" || strings.ContainsAny(name, " \t") {
		return "not the name of a table"
	}
	p.table = p.rules.AddTable(name)
	return ""
}

func (p *parser) declare(line string) string {
	name, rest := cut(line)
	policy, _ := cut(rest)
	if name == "" || policy == "" {
		return "a chain needs a name and a policy"
	}
	c := p.table.AddChain(name)
	if policy != "-" {
		c.Policy = policy
	}
	return ""
}

func (p *parser) append(line string) string {
	if line[0] == '[' {
		_, line = cut(line) // counters
	}
	command, rest := cut(line)
	if command != "-A" && command != "--append" {
		return "neither a chain nor a rule"
	}
	name, text := cut(rest)
	if name == "" {
		return "a rule without a chain"
	}
	c := p.table.Chain(name)
	if c == nil {
		return "chain " + name + " is not declared in table " + p.table.Name
	}
	if !balanced(text) {
		return "quote without an end"
	}
	c.Add(Rule(text))
	return ""
}

// cut splits off the first word.
func cut(line string) (word, rest string) {
	i := strings.IndexAny(line, " \t")
	if i < 0 {
		return line, ""
	}
	return line[:i], strings.TrimLeft(line[i:], " \t")
}
