package iptwalk

import (
	"fmt"
	"slices"

	"sluice/internal/iptables/rules"
)

// rule is a rule made ready to be walked.
type rule struct {
	text   rules.Rule
	parsed rules.Parsed
	tests  []namedTest
	broken error // it cannot be parsed
}

type namedTest struct {
	name string // of the match module or header option, for messages
	test test
}

func compile(text rules.Rule) *rule {
	r := &rule{text: text}
	if r.parsed, r.broken = text.Parse(); r.broken != nil {
		r.tests = []namedTest{{"this rule", always(unknown)}}
		return r
	}
	r.addTests("", r.parsed.Header)
	for _, m := range r.parsed.Matches {
		if len(m.Options) == 0 && !slices.Contains(harmless, m.Module) {
			r.tests = append(r.tests, namedTest{"-m " + m.Module, always(unknown)})
		}
		r.addTests(m.Module, m.Options)
	}
	return r
}

// harmless are the matches that need no option to say nothing.
var harmless = []string{"tcp", "udp", "sctp", "udplite", "comment"}

func (r *rule) addTests(module string, options []rules.Option) {
	for _, o := range options {
		name := "-m " + module
		if module == "" {
			name = "-" + o.Name
		}
		if t := optionTest(module, o, options); t != nil {
			r.tests = append(r.tests, namedTest{name, t})
		}
	}
}

// ask puts all tests to a packet. Where one is not known, its name is returned as well; a test that fails outweighs it.
func (r *rule) ask(w *walker, s state) (a answer, doubt string) {
	a = yes
	for _, t := range r.tests {
		got := t.test(w, s)
		switch {
		case got.unknown && doubt == "":
			doubt = t.name
		case got.unknown:
		case got.share == 0:
			return no, ""
		default:
			a.share *= got.share
		}
	}
	a.unknown = doubt != ""
	return a, doubt
}

// rule is the i-th rule of a chain, compiled when it is first met.
func (w *walker) rule(c *rules.Chain, i int) *rule {
	compiled := w.compiled[c]
	if compiled == nil {
		compiled = make([]*rule, len(c.Rules))
		w.compiled[c] = compiled
	}
	if compiled[i] == nil {
		compiled[i] = compile(c.Rules[i])
		if err := compiled[i].broken; err != nil {
			w.assume(fmt.Sprintf("not understood, assumed to do nothing: %v", err))
		}
	}
	return compiled[i]
}
