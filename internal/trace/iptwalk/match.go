package iptwalk

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/iptables/rules"
)

// answer is what a test says of a packet: the share of such packets that pass, or that it is not known.
type answer struct {
	share   float64
	unknown bool
}

var (
	yes     = answer{share: 1}
	no      = answer{}
	unknown = answer{unknown: true}
)

func truth(b bool) answer {
	if b {
		return yes
	}
	return no
}

func (a answer) negate(negated bool) answer {
	if negated && !a.unknown {
		return answer{share: 1 - a.share}
	}
	return a
}

// test is one option of a rule.
type test func(w *walker, s state) answer

func always(a answer) test { return func(*walker, state) answer { return a } }

// optionTest makes the test of one option, with its negation.
func optionTest(module string, o rules.Option, all []rules.Option) test {
	t := plainTest(module, o, all)
	if t == nil {
		return nil
	}
	return func(w *walker, s state) answer { return t(w, s).negate(o.Negated) }
}

// plainTest makes the test of one option of a match module, "" being the header. It is nil for an option that does not
// decide.
func plainTest(module string, o rules.Option, all []rules.Option) test {
	switch module {
	case "":
		return headerTest(o)
	case "comment", "nfacct":
		return nil
	case "physdev", "icmp", "icmp6":
		return always(no) // neither bridged nor ICMP
	case "tcp", "udp", "sctp", "udplite", "multiport":
		return portTest(o)
	case "mark":
		return markTest(o, func(s state) uint32 { return s.mark })
	case "connmark":
		return markTest(o, func(s state) uint32 { return s.ctmark })
	case "conntrack", "state":
		return conntrackTest(o)
	case "addrtype":
		return addrtypeTest(o, all)
	case "iprange":
		return rangeTest(o)
	case "statistic":
		return statisticTest(o)
	case "recent":
		return recentTest(o)
	case "set":
		return setTest(o)
	}
	return always(unknown)
}

func headerTest(o rules.Option) test {
	switch o.Name {
	case "s", "d":
		return addressTest(o)
	case "p":
		number, ok := rules.ProtocolNumber(o.Value())
		if !ok {
			return always(unknown)
		}
		return func(w *walker, _ state) answer { return truth(number == 0 || number == int(w.pkt.Protocol)) }
	case "f":
		return always(no) // the first packet of a connection is whole
	}
	return interfaceTest(o)
}

func addressTest(o rules.Option) test {
	var prefixes []rules.Prefix
	for text := range strings.SplitSeq(o.Value(), ",") {
		p, err := rules.ParsePrefix(text)
		if err != nil {
			return always(unknown)
		}
		prefixes = append(prefixes, p)
	}
	source := o.Name == "s"
	return func(_ *walker, s state) answer {
		a := s.dst.Addr()
		if source {
			a = s.src
		}
		return truth(slices.ContainsFunc(prefixes, func(p rules.Prefix) bool { return p.Contains(a) }))
	}
}

// interfaceTest compares with the name of the interface. At a hook where there is none, no name fits.
func interfaceTest(o rules.Option) test {
	name, isPrefix := strings.CutSuffix(o.Value(), "+")
	fits := func(got string) answer {
		return truth(got == name || isPrefix && strings.HasPrefix(got, name))
	}
	if o.Name == "i" {
		return func(w *walker, _ state) answer {
			w.askedInterface = w.askedInterface || w.noInterface()
			return fits(w.in)
		}
	}
	return func(w *walker, s state) answer {
		if !w.leaving() {
			return fits("")
		}
		out := w.host.out(s.dst.Addr())
		if out == "" && o.Value() != "+" {
			return unknown
		}
		return fits(out)
	}
}

func portTest(o rules.Option) test {
	switch o.Name {
	case "dport", "dports":
		return destinationPortTest(o.Value())
	case "tcp-flags":
		if len(o.Values) == 2 {
			return truthOfFlags(o.Values[0], o.Values[1])
		}
	case "syn":
		return always(yes)
	}
	return always(unknown) // the client's port, options of TCP, chunks of SCTP
}

func destinationPortTest(list string) test {
	type span struct{ first, last uint16 }
	var spans []span
	for text := range strings.SplitSeq(list, ",") {
		first, last, err := rules.ParsePorts(text)
		if err != nil {
			return always(unknown)
		}
		spans = append(spans, span{first, last})
	}
	return func(_ *walker, s state) answer {
		port := s.dst.Port()
		return truth(slices.ContainsFunc(spans, func(r span) bool { return r.first <= port && port <= r.last }))
	}
}

// truthOfFlags: of the flags in mask, a first packet of TCP has SYN and no other.
func truthOfFlags(mask, want string) test {
	syn := "NONE"
	if slices.Contains(strings.Split(mask, ","), "SYN") || mask == "ALL" {
		syn = "SYN"
	}
	return always(truth(want == syn))
}

func markTest(o rules.Option, of func(state) uint32) test {
	m, ok := rules.ParseMark(o.Value())
	if !ok || o.Name != "mark" {
		return always(unknown)
	}
	return func(_ *walker, s state) answer { return truth(of(s)&m.Mask == m.Value) }
}

func addrtypeTest(o rules.Option, all []rules.Option) test {
	if o.Name != "src-type" && o.Name != "dst-type" {
		return nil // an interface to limit the answer to
	}
	_, in := rules.Find(all, "limit-iface-in")
	_, out := rules.Find(all, "limit-iface-out")
	types := strings.Split(strings.ToUpper(o.Value()), ",")
	return func(w *walker, s state) answer {
		a := s.dst.Addr()
		if o.Name == "src-type" {
			a = s.src
		}
		kind := w.host.addrType(a)
		if kind == "LOCAL" && (in || out) {
			return unknown
		}
		return truth(slices.Contains(types, kind))
	}
}

func rangeTest(o rules.Option) test {
	from, to, ok := addressRange(o.Value())
	if !ok || o.Name != "src-range" && o.Name != "dst-range" {
		return always(unknown)
	}
	return func(_ *walker, s state) answer {
		a := s.dst.Addr()
		if o.Name == "src-range" {
			a = s.src
		}
		return truth(a.BitLen() == from.BitLen() && from.Compare(a) <= 0 && a.Compare(to) <= 0)
	}
}

// addressRange reads ADDRESS or ADDRESS-ADDRESS.
func addressRange(s string) (from, to netip.Addr, ok bool) {
	a, b, isRange := strings.Cut(s, "-")
	if !isRange {
		b = a
	}
	from, errA := netip.ParseAddr(strings.Trim(a, "[]"))
	to, errB := netip.ParseAddr(strings.Trim(b, "[]"))
	ok = errA == nil && errB == nil && from.BitLen() == to.BitLen() && from.Compare(to) <= 0
	return from, to, ok
}

// statisticTest lets the rule's share pass. Packets that are counted are spread evenly, too.
func statisticTest(o rules.Option) test {
	switch o.Name {
	case "probability":
		if n, ok := rules.ParseProbability(o.Value()); ok {
			return always(answer{share: float64(n) / rules.One})
		}
	case "every":
		if n, err := strconv.ParseUint(o.Value(), 10, 32); err == nil && n > 0 {
			return always(answer{share: 1 / float64(n)})
		}
	case "mode", "packet":
		return nil
	}
	return always(unknown)
}

// recentTest is for a client that was not here before.
func recentTest(o rules.Option) test {
	switch o.Name {
	case "set":
		return always(yes)
	case "rcheck", "update", "remove":
		return func(w *walker, _ state) answer {
			w.askedHistory = true
			return no
		}
	}
	return nil
}
