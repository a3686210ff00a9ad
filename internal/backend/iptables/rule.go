package iptables

import (
	"net/netip"
	"strconv"
	"strings"

	"sluice/internal/iptables/rules"
	"sluice/internal/model"
)

// rule is one rule before it is text. Its fields are in the order in which iptables-save prints them.
type rule struct {
	src, dst string // address with its length, "! " before it to invert
	in       string // interface, likewise
	proto    model.Protocol
	icmp     string // the protocol's name where it is ICMP
	comment  string
	match    string // further matches, as printed
	port     uint16 // destination port; 0: any
	target   string // and its options; empty: none
}

// chainText collects the rules of one chain as text.
type chainText struct {
	chain string
	buf   []byte
}

// add writes r as iptables-save would, so that equal rules are equal text.
func (c *chainText) add(r rule) {
	c.word("-A", c.chain)
	c.option("-s", r.src)
	c.option("-d", r.dst)
	c.option("-i", r.in)
	if r.proto != 0 {
		c.word(" -p", r.proto.Lower())
	}
	if r.icmp != "" {
		c.word(" -p", r.icmp)
	}
	if r.comment != "" {
		c.word(" -m comment --comment", quote(r.comment))
	}
	if r.match != "" {
		c.word("", r.match)
	}
	if r.proto != 0 {
		c.word(" -m", r.proto.Lower())
	}
	if r.port != 0 {
		c.word(" --dport", strconv.Itoa(int(r.port)))
	}
	if r.target != "" {
		c.word(" -j", r.target)
	}
	c.buf = append(c.buf, '\n')
}

func (c *chainText) word(option, value string) {
	c.buf = append(c.buf, option...)
	c.buf = append(c.buf, ' ')
	c.buf = append(c.buf, value...)
}

// option writes a value that may be inverted.
func (c *chainText) option(option, value string) {
	if value == "" {
		return
	}
	if plain, inverted := strings.CutPrefix(value, "! "); inverted {
		c.word(" !", option)
		value = plain
	} else {
		c.word("", option)
	}
	c.word("", value)
}

// chain is one chain of a table. Its text has a line for each rule, as iptables-save prints it.
type chain struct{ name, text string }

func (c *chainText) done() chain { return chain{c.chain, string(c.buf)} }

// commentMax is what the kernel holds of a comment, without the NUL at its end (XT_MAX_COMMENT_LEN).
const commentMax = 255

// quote makes one word of a comment. What cannot be said in a line becomes a space: names in a cluster have no such
// bytes, those in a file may.
func quote(comment string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, comment)
	return rules.Quote(clean[:min(len(clean), commentMax)])
}

// host is an address alone, as a match.
func host(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }

// not inverts a match.
func not(match string) string { return "! " + match }
