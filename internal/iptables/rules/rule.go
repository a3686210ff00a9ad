package rules

import (
	"errors"
	"fmt"
	"slices"
)

// Parsed is a rule in structure.
type Parsed struct {
	// Header holds the options that need no match module, by their short names: s, d, i, o, p, f.
	Header []Option
	// Matches are the match modules in order. One that a protocol implies ("-p tcp --dport 80") is there as well.
	Matches []Match
	// Target is empty when the rule has none: it only counts.
	Target        string
	TargetOptions []Option
	Goto          bool // -g rather than -j
}

// Match is one use of a match module.
type Match struct {
	Module  string
	Options []Option
}

// Option is one option, by its name without dashes, and its values as written. Longer names for the same thing
// (--destination-port) are replaced by the one that iptables-save prints (dport).
type Option struct {
	Name    string
	Negated bool
	Values  []string
}

// Value is the first value, or empty.
func (o Option) Value() string {
	if len(o.Values) == 0 {
		return ""
	}
	return o.Values[0]
}

// Find is the first option of that name.
func Find(options []Option, name string) (Option, bool) {
	i := slices.IndexFunc(options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return Option{}, false
	}
	return options[i], true
}

// Comment is the text of the rule's first comment, or empty.
func (p Parsed) Comment() string {
	for _, m := range p.Matches {
		if o, ok := Find(m.Options, "comment"); ok && m.Module == "comment" {
			return o.Value()
		}
	}
	return ""
}

// Protocol is the number of the protocol that the rule wants, or 0 where it wants none or all but one.
func (p Parsed) Protocol() int {
	o, ok := Find(p.Header, "p")
	if !ok || o.Negated {
		return 0
	}
	number, _ := ProtocolNumber(o.Value())
	return number
}

// Parse takes the rule apart.
func (r Rule) Parse() (Parsed, error) {
	words, ok := split(string(r))
	if !ok {
		return Parsed{}, fmt.Errorf("rule %q: quote without an end", string(r))
	}
	p, err := build(words)
	if err != nil {
		return Parsed{}, fmt.Errorf("rule %q: %w", string(r), err)
	}
	return p, nil
}

func build(words []word) (Parsed, error) {
	options, err := readOptions(words)
	if err != nil {
		return Parsed{}, err
	}
	b := builder{implied: impliedModule(options)}
	for _, o := range options {
		if err := b.place(o); err != nil {
			return Parsed{}, err
		}
	}
	b.rule.Matches = withoutImplied(b.rule.Matches, b.implied)
	return b.rule, nil
}

type builder struct {
	rule    Parsed
	implied string // the match module that the rule's protocol implies
}

// place puts an option where it belongs: the header, the match that it names, or the last match or target begun.
func (b *builder) place(o Option) error {
	switch {
	case o.Name == "m", o.Name == "j", o.Name == "g":
		return b.begin(o)
	case o.Name == "c", o.Name == "4", o.Name == "6":
		return nil
	case slices.Contains(headerOptions, o.Name):
		return b.header(o)
	case b.implied != "" && slices.Contains(protocolOptions, o.Name):
		b.ofProtocol(o)
	case b.rule.Target != "":
		b.rule.TargetOptions = append(b.rule.TargetOptions, o)
	case len(b.rule.Matches) > 0:
		m := &b.rule.Matches[len(b.rule.Matches)-1]
		m.Options = append(m.Options, o)
	default:
		return fmt.Errorf("option --%s belongs to no match", o.Name)
	}
	return nil
}

func (b *builder) begin(o Option) error {
	if len(o.Values) != 1 || o.Value() == "" || o.Negated {
		return fmt.Errorf("option -%s wants one name", o.Name)
	}
	if o.Name == "m" {
		b.rule.Matches = append(b.rule.Matches, Match{Module: o.Value()})
		return nil
	}
	if b.rule.Target != "" {
		return errors.New("two targets")
	}
	b.rule.Target, b.rule.Goto = o.Value(), o.Name == "g"
	return nil
}

func (b *builder) header(o Option) error {
	want := 1
	if o.Name == "f" {
		want = 0
	}
	if len(o.Values) != want {
		return fmt.Errorf("option -%s wants %d values", o.Name, want)
	}
	if _, twice := Find(b.rule.Header, o.Name); twice {
		return fmt.Errorf("option -%s twice", o.Name)
	}
	b.rule.Header = append(b.rule.Header, o)
	return nil
}

// ofProtocol gives the option to the last match module of the rule's protocol, begun here if it was not.
func (b *builder) ofProtocol(o Option) {
	for i := len(b.rule.Matches) - 1; i >= 0; i-- {
		if m := &b.rule.Matches[i]; m.Module == b.implied {
			m.Options = append(m.Options, o)
			return
		}
	}
	b.rule.Matches = append(b.rule.Matches, Match{Module: b.implied, Options: []Option{o}})
}

// withoutImplied leaves out a "-m tcp" that says no more than "-p tcp".
func withoutImplied(matches []Match, implied string) []Match {
	return slices.DeleteFunc(matches, func(m Match) bool { return m.Module == implied && len(m.Options) == 0 })
}
