package ipsets

import (
	"net/netip"
	"strings"

	"sluice/internal/iptables/rules"
	"sluice/internal/model"
)

// rule is one rule before it is text. Its fields are in the order in which iptables-save prints them.
type rule struct {
	src, dst string // address with its length, "! " before it to invert
	in       string // interface, likewise
	proto    string
	comment  string
	match    []string // further matches, as printed
	target   string   // and its options
}

// text is the rule as iptables-save prints it.
func (r rule) text() rules.Rule {
	var words []string
	option := func(name, value string) {
		switch plain, inverted := strings.CutPrefix(value, "! "); {
		case value == "":
		case inverted:
			words = append(words, "!", name, plain)
		default:
			words = append(words, name, value)
		}
	}
	option("-s", r.src)
	option("-d", r.dst)
	option("-i", r.in)
	option("-p", r.proto)
	if r.comment != "" {
		words = append(words, "-m comment --comment", rules.Quote(r.comment))
	}
	words = append(words, r.match...)
	option("-j", r.target)
	return rules.Rule(strings.Join(words, " "))
}

// and is the rule with one more match.
func (r rule) and(match ...string) rule {
	r.match = append(append([]string(nil), r.match...), match...)
	return r
}

const (
	toThisNode      = "-m addrtype --dst-type LOCAL"
	fromThisNode    = "-m addrtype --src-type LOCAL"
	notFromThisNode = "-m addrtype ! --src-type LOCAL"
	newConnections  = "-m conntrack --ctstate NEW"
)

// in matches a packet that the family's set of a kind has, by the parts named.
func (c *compiler) in(k kind, parts string) string {
	return "-m set --match-set " + setName(k, c.family) + " " + parts
}

func (c *compiler) notIn(k kind, parts string) string {
	return "-m set ! --match-set " + setName(k, c.family) + " " + parts
}

// The parts of a packet that sets are asked about.
const (
	address        = "dst"         // or the port alone
	addressPort    = "dst,dst"     // what it is for
	addressPortSrc = "dst,dst,src" // and whom it is from
)

// fromPods matches the traffic of pods. It reports false where nothing tells that.
func (c *compiler) fromPods() (match rule, ok bool) {
	switch d := c.node.Detect[c.family]; {
	case d.CIDR.IsValid() && d.CIDR.Bits() == 0:
		return rule{}, true // iptables-save prints no match for a range that holds everything
	case d.CIDR.IsValid():
		return rule{src: d.CIDR.String()}, true
	case d.Wildcard:
		return rule{in: d.Interface + "+"}, true
	case d.Interface != "":
		return rule{in: d.Interface}, true
	}
	return rule{}, false
}

// notFromPods matches all other traffic. It reports false where that is none.
func (c *compiler) notFromPods() (match rule, some bool) {
	pods, told := c.fromPods()
	switch {
	case !told:
		return rule{}, true
	case pods.src != "":
		return rule{src: not(pods.src)}, true
	case pods.in != "":
		return rule{in: not(pods.in)}, true
	}
	return rule{}, false
}

// nodePortMatches match packets to an address of this node that accepts node ports. Addresses on the interface of ipvs
// are the kernel's to accept, and no node's.
func (c *compiler) nodePortMatches() (ms []rule) {
	if c.node.NodePorts[c.family].All {
		return []rule{{dst: not(loopbackRange[c.family]), match: []string{toThisNode, c.notIn(ipvsIPs, address)}}}
	}
	for _, a := range c.node.NodePorts[c.family].Addresses {
		ms = append(ms, rule{dst: host(a)})
	}
	return ms
}

// partsOf are the parts of a packet that a set of node ports is asked about.
func partsOf(p model.Protocol) string {
	if p == model.SCTP {
		return addressPort
	}
	return address
}

// host is an address alone, as a match.
func host(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }

// not inverts a match.
func not(match string) string { return "! " + match }
