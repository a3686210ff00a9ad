package nftwalk

import (
	"fmt"
	"slices"
	"strings"

	"sluice/internal/nft"
	"sluice/internal/trace"
)

// words say what a rule did to a flow: each topic once, with what it was for the states of the flow.
type words struct {
	topics []topic
	doubt  bool
}

type topic struct {
	intro string
	all   map[string]bool
	first []string
}

// told is how many of the things that are told alike are told one by one.
const told = 3

func (s *words) say(intro, what string) {
	i := slices.IndexFunc(s.topics, func(t topic) bool { return t.intro == intro })
	if i < 0 {
		i = len(s.topics)
		s.topics = append(s.topics, topic{intro: intro, all: map[string]bool{}})
	}
	t := &s.topics[i]
	if t.all[what] {
		return
	}
	t.all[what] = true
	if len(t.first) < told {
		t.first = append(t.first, what)
	}
}

// has tells of an element that was found.
func (s *words) has(set *nft.Set, e nft.Element) {
	plain := nft.Set{Key: set.Key, Data: set.Data}
	text := plain.ElementString(&nft.Element{Key: e.Key, End: e.End, Data: e.Data})
	s.say(set.Name+" has ", text+comment(e))
}

func (s *words) lacks(set *nft.Set, key nft.Value) {
	s.say(set.Name+" has no ", string(nft.AppendValue(nil, set.Key, key)))
}

func comment(e nft.Element) string {
	if e.Comment == "" {
		return ""
	}
	return " (" + e.Comment + ")"
}

func (s *words) String() string {
	var sentences []string
	if s.doubt {
		sentences = append(sentences, "? this is not known here, so both ways are followed")
	}
	for _, t := range s.topics {
		more := ""
		if n := len(t.all) - len(t.first); n > 0 {
			more = fmt.Sprintf(" or %d more", n)
		}
		sentences = append(sentences, t.intro+strings.Join(t.first, " or ")+more)
	}
	return strings.Join(sentences, "; ")
}

func verdictText(v nft.Verdict) string {
	switch v.Kind {
	case nft.Accept:
		return "accepted"
	case nft.Drop:
		return "dropped"
	case nft.Return:
		return "back to the calling chain"
	case nft.Goto:
		return "on to chain " + v.Chain + ", for good"
	case nft.Jump:
		return "on to chain " + v.Chain
	}
	return "on to the next rule"
}

// metaText is a mark in hexadecimal, or a priority as a class.
func metaText(m nft.Meta, v nft.Value) string {
	if m == nft.Priority {
		return string(nft.AppendValue(nil, []nft.Field{{Type: nft.ClassID}}, v))
	}
	return fmt.Sprintf("0x%08x", uint32Of(v))
}

// maxSteps is more than anyone reads.
const maxSteps = 500

// tell makes a step of a rule that did something to some of the flow.
func (w *walker) tell(p *passage, path []string) {
	if len(w.steps) > maxSteps {
		return
	}
	step := trace.Step{At: strings.Join(path, " → "), Rule: p.rule.String(), Says: p.says()}
	if len(w.steps) == maxSteps {
		step.Rule, step.Says = "", "… and more: only so many steps are told"
	}
	w.steps = append(w.steps, step)
}

// says is what the rule did, and to how many of all packets unless it is all of them.
func (p *passage) says() string {
	says := p.words.String()
	if says == "" {
		says = "matched, and on to the next rule"
	}
	share := p.at.Total() + p.rejected
	for _, to := range p.routes {
		share += to.flow.Total()
	}
	if share < 1-1e-9 {
		says = trace.Percent(share) + " of all: " + says
	}
	return says
}
