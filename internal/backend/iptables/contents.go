package iptables

import (
	"slices"
	"strings"

	"sluice/internal/iptables/rules"
)

// contents is what one family's tables hold: the text of each chain, as chain.text has it.
type contents [len(tables)]map[string]string

func newContents() (c contents) {
	for t := range c {
		c[t] = map[string]string{}
	}
	return c
}

// contentsOf takes in what iptables-save printed. A text that is that of known becomes the same string, so that the
// rules are in memory once, and comparing them costs nothing.
func contentsOf(rs *rules.Ruleset, known contents) contents {
	c := newContents()
	for _, t := range tables {
		table := rs.Table(t.String())
		if table == nil {
			continue
		}
		for _, ch := range table.Chains {
			if text, ok := known[t][ch.Name]; ok && isText(text, ch) {
				c[t][ch.Name] = text
			} else {
				c[t][ch.Name] = textOf(ch)
			}
		}
	}
	return c
}

// isText reports whether text is that of the chain, without making the latter.
func isText(text string, ch *rules.Chain) bool {
	for _, r := range ch.Rules {
		for _, word := range [...]string{"-A ", ch.Name, " ", string(r), "\n"} {
			rest, ok := strings.CutPrefix(text, word)
			if !ok {
				return false
			}
			text = rest
		}
	}
	return text == ""
}

func textOf(ch *rules.Chain) string {
	var text strings.Builder
	for _, r := range ch.Rules {
		text.WriteString(r.Line(ch.Name) + "\n")
	}
	return text.String()
}

// lines are the rules of a chain's text.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// sameText reports whether two texts of one chain mean the same, whatever version of iptables printed them.
func sameText(a, b string) bool {
	if a == b {
		return true
	}
	as, bs := lines(a), lines(b)
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		if !sameLine(as[i], bs[i]) {
			return false
		}
	}
	return true
}

// sameLine reports whether two lines "-A CHAIN rule" mean the same.
func sameLine(a, b string) bool {
	return a == b || ruleOf(a).chain == ruleOf(b).chain && rules.Equal(ruleOf(a).rule, ruleOf(b).rule)
}

// line is a line of a chain's text, taken apart.
type line struct {
	chain string
	rule  rules.Rule
}

func ruleOf(text string) line {
	chain, rule, _ := strings.Cut(strings.TrimPrefix(text, "-A "), " ")
	return line{chain, rules.Rule(rule)}
}

// advance does to c what iptables-restore does to the tables when it is given d.
func (c contents) advance(d delta) {
	for _, t := range tables {
		for _, name := range slices.Concat(d[t].create, d[t].empty) {
			c[t][name] = ""
		}
		for _, ch := range d[t].write {
			c[t][ch.name] = ch.text
		}
		for _, e := range d[t].edits {
			c[t][e.from] = e.apply(c[t][e.from])
		}
		for _, name := range d[t].remove {
			delete(c[t], name)
		}
	}
}

// apply edits the text of its chain.
func (e edit) apply(text string) string {
	all := lines(text)
	switch at := slices.Index(all, e.rule); {
	case e.place == 0:
		all = append(all, e.rule)
	case e.place == deletion && at >= 0:
		all = slices.Delete(all, at, at+1)
	case e.place > 0:
		all = slices.Insert(all, min(e.place-1, len(all)), e.rule)
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}
