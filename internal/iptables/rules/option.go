package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// readOptions cuts words into options.
func readOptions(words []word) (options []Option, err error) {
	for len(words) > 0 {
		var o Option
		if o, words, err = readOption(words); err != nil {
			return nil, err
		}
		options = append(options, o)
	}
	return options, nil
}

// readOption reads one option with its negation and values.
func readOption(words []word) (Option, []word, error) {
	negated, words := negation(words)
	if len(words) == 0 {
		return Option{}, nil, errors.New("ends with a negation")
	}
	name, err := optionName(words[0])
	if err != nil {
		return Option{}, nil, err
	}
	words = words[1:]
	if slices.Contains(textOptions, name) {
		if len(words) == 0 {
			return Option{}, nil, fmt.Errorf("option --%s wants a value", name)
		}
		return Option{Name: name, Negated: negated, Values: []string{words[0].text}}, words[1:], nil
	}
	inner := false
	if len(words) > 1 && !words[1].option() {
		inner, words = negation(words) // "-s ! ADDRESS", as old versions wrote; before an option it is the option's
	}
	o := Option{Name: name, Negated: negated != inner}
	for len(words) > 0 && !words[0].option() && !words[0].is("!") {
		o.Values = append(o.Values, words[0].text)
		words = words[1:]
	}
	return o, words, nil
}

func negation(words []word) (bool, []word) {
	if len(words) > 0 && words[0].is("!") {
		return true, words[1:]
	}
	return false, words
}

// textOptions hold free text: they take exactly one word, whatever it looks like.
var textOptions = []string{"comment", "log-prefix", "nflog-prefix", "ulog-prefix", "name", "nfacct-name", "string"}

func optionName(w word) (string, error) {
	if !w.option() {
		return "", fmt.Errorf("%q is not an option", w.text)
	}
	name := strings.TrimPrefix(strings.TrimPrefix(w.text, "-"), "-")
	if short, ok := aliases[name]; ok {
		return short, nil
	}
	if len(w.text) == len(name)+1 && !slices.Contains(shortOptions, name) || strings.Trim(name, letters+"-_.") != "" || name == "" || name[0] == '-' {
		return "", fmt.Errorf("unknown option %s", w.text)
	}
	return name, nil
}

var (
	headerOptions = []string{"s", "d", "i", "o", "p", "f"}
	shortOptions  = append([]string{"m", "j", "g", "c", "4", "6"}, headerOptions...)
)

var aliases = map[string]string{
	"source": "s", "src": "s", "destination": "d", "dst": "d", "protocol": "p", "proto": "p",
	"in-interface": "i", "out-interface": "o", "fragment": "f", "match": "m", "jump": "j", "goto": "g",
	"set-counters": "c", "ipv4": "4", "ipv6": "6",
	"source-port": "sport", "destination-port": "dport", "source-ports": "sports", "destination-ports": "dports",
}
