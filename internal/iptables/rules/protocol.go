package rules

import (
	"slices"
	"strconv"
	"strings"
)

// protocols are the names that iptables-save may print rather than a number; the first one of a number is ours.
var protocols = []struct {
	number int
	name   string
}{
	{0, "all"},
	{1, "icmp"},
	{2, "igmp"},
	{4, "ipencap"},
	{6, "tcp"},
	{17, "udp"},
	{33, "dccp"},
	{41, "ipv6"},
	{47, "gre"},
	{50, "esp"},
	{51, "ah"},
	{58, "ipv6-icmp"},
	{58, "icmpv6"},
	{58, "icmp6"},
	{89, "ospf"},
	{103, "pim"},
	{108, "ipcomp"},
	{112, "vrrp"},
	{115, "l2tp"},
	{132, "sctp"},
	{135, "ipv6-mh"},
	{135, "mh"},
	{136, "udplite"},
}

// ProtocolNumber is the number of a protocol written as iptables writes it: a name or a number. 0 is all of them.
func ProtocolNumber(s string) (number int, ok bool) {
	if n, err := strconv.ParseUint(s, 10, 8); err == nil {
		return int(n), true
	}
	for _, p := range protocols {
		if strings.EqualFold(p.name, s) {
			return p.number, true
		}
	}
	return 0, false
}

// protocolName is the name of a number, or the number as text.
func protocolName(number int) string {
	for _, p := range protocols {
		if p.number == number {
			return p.name
		}
	}
	return strconv.Itoa(number)
}

// protocolOptions are those of the match modules that a protocol implies.
var protocolOptions = []string{
	"sport", "dport", "tcp-flags", "syn", "tcp-option", "chunk-types", "icmp-type", "icmpv6-type", "dccp-types",
	"dccp-option",
}

// impliedModule is the match module that a rule's "-p" implies, or empty.
func impliedModule(options []Option) string {
	o, ok := Find(options, "p")
	if !ok || o.Negated {
		return ""
	}
	return moduleOf(o.Value())
}

func moduleOf(protocol string) string {
	number, ok := ProtocolNumber(protocol)
	switch {
	case !ok:
		return ""
	case slices.Contains([]int{1, 6, 17, 33, 132, 136}, number):
		return protocolName(number)
	case number == 58:
		return "icmp6"
	}
	return ""
}
