package rules

import (
	"cmp"
	"slices"
	"strings"
)

// normalMatch brings the options of a match that is known into one spelling and order; others stay as they are.
func normalMatch(m Match) Match {
	switch m.Module {
	case "tcp", "udp", "sctp", "udplite", "dccp":
		return Match{m.Module, sorted(edit(m.Options, normalPort))}
	case "icmp", "icmp6":
		return Match{m.Module, edit(m.Options, normalICMP)}
	case "mark", "connmark":
		return Match{m.Module, edit(m.Options, normalMark)}
	case "conntrack", "state":
		return Match{"conntrack", sorted(edit(m.Options, normalConntrack))}
	case "addrtype":
		return Match{m.Module, sorted(edit(m.Options, normalAddrtype))}
	case "statistic":
		return Match{m.Module, normalStatistic(m.Options)}
	case "recent":
		return Match{m.Module, normalRecent(m.Options)}
	}
	return m
}

// edit passes each option through a function, which may say to leave it out.
func edit(options []Option, normal func(Option) (Option, bool)) (edited []Option) {
	for _, o := range options {
		if o, keep := normal(o); keep {
			edited = append(edited, o)
		}
	}
	return edited
}

func sorted(options []Option) []Option {
	slices.SortStableFunc(options, func(a, b Option) int { return cmp.Compare(a.Name, b.Name) })
	return options
}

func normalPort(o Option) (Option, bool) {
	switch o.Name {
	case "sport", "dport":
		ports, all := normalPorts(o.Value())
		return Option{o.Name, o.Negated, []string{ports}}, !all || o.Negated
	case "syn":
		return Option{"tcp-flags", o.Negated, []string{"FIN,SYN,RST,ACK", "SYN"}}, true
	case "tcp-flags":
		o.Values = slices.Clone(o.Values)
		for i, v := range o.Values {
			o.Values[i] = inOrder(v, tcpFlags)
		}
	}
	return o, true
}

func normalICMP(o Option) (Option, bool) {
	names := icmpTypes
	if o.Name == "icmpv6-type" {
		names = icmp6Types
	}
	if number, ok := names[o.Value()]; ok {
		o.Values = []string{number}
	}
	return o, true
}

var (
	icmpTypes  = map[string]string{"echo-reply": "0", "pong": "0", "destination-unreachable": "3", "echo-request": "8", "ping": "8"}
	icmp6Types = map[string]string{"destination-unreachable": "1", "packet-too-big": "2", "echo-request": "128", "ping": "128", "echo-reply": "129", "pong": "129"}
)

func normalMark(o Option) (Option, bool) {
	if v, ok := ParseMark(o.Value()); ok && o.Name == "mark" {
		o.Values = []string{v.match()}
	}
	return o, true
}

func normalConntrack(o Option) (Option, bool) {
	if o.Name == "state" {
		o.Name = "ctstate"
	}
	if o.Name == "ctstate" {
		o.Values = []string{inOrder(o.Value(), ctStates)}
	}
	return o, true
}

func normalAddrtype(o Option) (Option, bool) {
	if o.Name == "src-type" || o.Name == "dst-type" {
		o.Values = []string{inOrder(o.Value(), nil)}
	}
	return o, true
}

var (
	ctStates = []string{"INVALID", "NEW", "RELATED", "ESTABLISHED", "UNTRACKED", "SNAT", "DNAT"}
	tcpFlags = []string{"FIN", "SYN", "RST", "PSH", "ACK", "URG"}
)

// inOrder writes a list of words in upper case, each once, in the given order and then that of the alphabet.
func inOrder(list string, order []string) string {
	words := strings.Split(strings.ToUpper(list), ",")
	slices.SortFunc(words, func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a, order), place(b, order)), cmp.Compare(a, b))
	})
	return strings.Join(slices.Compact(words), ",")
}

func place(word string, order []string) int {
	if i := slices.Index(order, word); i >= 0 {
		return i
	}
	return len(order)
}

func normalStatistic(options []Option) []Option {
	options = edit(options, func(o Option) (Option, bool) {
		if n, ok := ParseProbability(o.Value()); ok && o.Name == "probability" {
			o.Values = []string{Probability(n)}
		}
		return o, o.Name != "packet" || o.Value() != "0"
	})
	return sorted(options)
}

// normalRecent leaves out what recent assumes when it is not given.
func normalRecent(options []Option) []Option {
	return sorted(edit(options, func(o Option) (Option, bool) {
		switch o.Name {
		case "name":
			return o, o.Value() != "DEFAULT"
		case "mask":
			return o, o.Value() != "255.255.255.255" && o.Value() != "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
		}
		return o, o.Name != "rsource"
	}))
}
