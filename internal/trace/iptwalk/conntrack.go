package iptwalk

import (
	"slices"
	"strings"

	"sluice/internal/iptables/rules"
)

// conntrackTest asks the connection. Its first packet makes it new, and the translations done so far show.
func conntrackTest(o rules.Option) test {
	switch o.Name {
	case "ctstate", "state":
		return stateTest(strings.Split(strings.ToUpper(o.Value()), ","))
	case "ctdir":
		return always(truth(strings.EqualFold(o.Value(), "ORIGINAL")))
	case "ctproto":
		number, ok := rules.ProtocolNumber(o.Value())
		if !ok {
			return always(unknown)
		}
		return func(w *walker, _ state) answer { return truth(number == int(w.pkt.Protocol)) }
	case "ctorigsrc", "ctorigdst":
		return originalTest(o)
	case "ctorigdstport":
		first, last, err := rules.ParsePorts(o.Value())
		if err != nil {
			return always(unknown)
		}
		return func(w *walker, _ state) answer {
			return truth(first <= w.pkt.To.Port() && w.pkt.To.Port() <= last)
		}
	}
	return always(unknown)
}

func stateTest(states []string) test {
	return func(w *walker, s state) answer {
		has := func(name string) bool { return slices.Contains(states, name) }
		switch {
		case s.untracked:
			return truth(has("UNTRACKED"))
		case w.table == "raw": // before connection tracking
			return truth(has("INVALID"))
		}
		return truth(has("NEW") || s.dnat && has("DNAT") || s.snat && has("SNAT"))
	}
}

func originalTest(o rules.Option) test {
	p, err := rules.ParsePrefix(o.Value())
	if err != nil {
		return always(unknown)
	}
	return func(w *walker, _ state) answer {
		a := w.pkt.To.Addr()
		if o.Name == "ctorigsrc" {
			a = w.pkt.From
		}
		return truth(p.Contains(a))
	}
}
