package rules

import "strings"

// word is one word of a rule. A quoted word is never an option or a negation, whatever it looks like.
type word struct {
	text   string
	quoted bool
}

func (w word) is(s string) bool { return !w.quoted && w.text == s }

func (w word) option() bool { return !w.quoted && len(w.text) > 1 && w.text[0] == '-' }

// split cuts a rule into words as iptables-restore does: double quotes keep blanks, and a backslash within them keeps
// the next character. It reports false where a quote has no end.
func split(text string) (words []word, ok bool) {
	for {
		text = strings.TrimLeft(text, " \t\n")
		if text == "" {
			return words, true
		}
		w, rest, ok := first(text)
		if !ok {
			return nil, false
		}
		words = append(words, w)
		text = rest
	}
}

// first takes the first word off a text that does not begin with a blank.
func first(text string) (w word, rest string, ok bool) {
	end := strings.IndexAny(text, " \t\n\"")
	if end < 0 {
		return word{text: text}, "", true
	}
	if text[end] != '"' {
		return word{text: text[:end]}, text[end:], true
	}
	return firstQuoted(text)
}

func firstQuoted(text string) (w word, rest string, ok bool) {
	var b strings.Builder
	open := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			open = !open
		case open && c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case !open && strings.IndexByte(" \t\n", c) >= 0:
			return word{b.String(), true}, text[i:], true
		default:
			b.WriteByte(c)
		}
	}
	return word{b.String(), true}, "", !open
}

// balanced reports whether every quote has an end.
func balanced(text string) bool {
	open := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			open = !open
		case '\\':
			if open {
				i++
			}
		}
	}
	return !open
}

const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// Quote spells a text value, such as a comment, as iptables-save does: bare when it is made of letters, digits, "_" and
// "-", otherwise in double quotes.
func Quote(s string) string {
	if s != "" && strings.Trim(s, letters+"_-") == "" {
		return s
	}
	return quote(s)
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`"\'`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
	return b.String()
}

// spell writes any value so that split reads it back as a value: bare where it can be.
func spell(s string) string {
	if s == "" || s[0] == '-' || s == "!" || strings.ContainsAny(s, " \t\n\"\\'") {
		return quote(s)
	}
	return s
}
