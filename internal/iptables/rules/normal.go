package rules

import (
	"cmp"
	"slices"
	"strings"
)

// Equal reports whether the two rules, in whatever spelling, are the same to the kernel.
func Equal(a, b Rule) bool {
	return a == b || a.Normal() == b.Normal()
}

// Normal is a text that equal rules have in common. It is a key to compare by and not always something to load: what
// goes without saying (default values, "-m tcp" after "-p tcp") is left out of it, and matches that do not depend on
// their order are sorted. A rule that cannot be parsed is its own normal form.
func (r Rule) Normal() string {
	p, err := r.Parse()
	if err != nil {
		return string(r)
	}
	for i := range p.Matches {
		p.Matches[i] = normalMatch(p.Matches[i])
	}
	p.Matches = withoutImplied(p.Matches, impliedModule(p.Header))
	p.Header = normalHeader(p.Header)
	sortMatches(p.Matches)
	p.TargetOptions = normalTarget(p.Target, p.TargetOptions)
	return p.text()
}

// text writes the rule with each option under its own match.
func (p Parsed) text() string {
	var b writer
	b.options("-", p.Header)
	for _, m := range p.Matches {
		b.word("-m")
		b.word(spell(m.Module))
		b.options("--", m.Options)
	}
	if p.Target != "" {
		b.word(map[bool]string{true: "-g", false: "-j"}[p.Goto])
		b.word(spell(p.Target))
		b.options("--", p.TargetOptions)
	}
	return b.String()
}

type writer struct{ strings.Builder }

func (b *writer) word(s string) {
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(s)
}

func (b *writer) options(dash string, options []Option) {
	for _, o := range options {
		if o.Negated {
			b.word("!")
		}
		b.word(dash + o.Name)
		for _, v := range o.Values {
			b.word(spell(v))
		}
	}
}

// pure are the matches that neither remember packets nor differ from one evaluation to the next, so that their order
// among themselves means nothing. All others keep their place: statistic counts only the packets that reach it, and
// recent writes down the client that does.
var pure = []string{
	"addrtype", "connmark", "conntrack", "dccp", "icmp", "icmp6", "iprange", "mark", "multiport", "physdev", "sctp",
	"state", "tcp", "udp", "udplite",
}

// sortMatches sorts the pure matches between any two others, and puts comments first, which are not matches at all.
func sortMatches(matches []Match) {
	slices.SortStableFunc(matches, func(a, b Match) int {
		return cmp.Compare(rank(a), rank(b))
	})
	for start := 0; start < len(matches); {
		end := start
		for end < len(matches) && slices.Contains(pure, matches[end].Module) {
			end++
		}
		slices.SortStableFunc(matches[start:end], compareMatches)
		start = end + 1
	}
}

func rank(m Match) int {
	if m.Module == "comment" {
		return 0
	}
	return 1
}

func compareMatches(a, b Match) int {
	if c := cmp.Compare(a.Module, b.Module); c != 0 {
		return c
	}
	return cmp.Compare(Parsed{Matches: []Match{a}}.text(), Parsed{Matches: []Match{b}}.text())
}

// normalHeader brings addresses, interfaces and protocol into one spelling and order, without those that match all.
func normalHeader(options []Option) []Option {
	var normal []Option
	for _, name := range headerOptions {
		o, ok := Find(options, name)
		if !ok {
			continue
		}
		all := false
		switch name {
		case "s", "d":
			o.Values, all = normalAddress(o.Value())
		case "p":
			o.Values, all = normalProtocol(o.Value())
		case "i", "o":
			all = o.Value() == "+"
		}
		if !all || o.Negated {
			normal = append(normal, o)
		}
	}
	return normal
}
