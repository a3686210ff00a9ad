package iptables

import (
	"sluice/internal/model"
	"sluice/internal/plan"
)

// markRules are nat KUBE-MARK-MASQ: who passes here gets a new source address at the end.
func (c *compiler) markRules() chain {
	mark := c.opts.mark()
	text := chainText{chain: chainMark}
	text.add(rule{target: "MARK --set-xmark " + mark + "/" + mark})
	return text.done()
}

// masqueradeRules are nat KUBE-POSTROUTING. The mark is taken away first, since a packet may come by again with the
// mark still on it once a tunnel has wrapped it.
func (c *compiler) masqueradeRules() chain {
	mark := c.opts.mark()
	text := chainText{chain: chainMasquerade}
	text.add(rule{match: "-m mark ! --mark " + mark + "/" + mark, target: "RETURN"})
	if c.node.NodePorts[c.family].Loopback {
		text.buf = append(text.buf, localhostRule(c.family)...)
	}
	text.add(rule{target: "MARK --set-xmark " + mark + "/0x0"})
	text.add(rule{comment: "kubernetes service traffic requiring SNAT", target: "MASQUERADE --random-fully"})
	return text.done()
}

// localhostRule only counts. Whoever connected to a node port at a loopback address comes by here once, and no other
// connection with such a destination does.
func localhostRule(f model.Family) string {
	text := chainText{chain: chainMasquerade}
	text.add(rule{comment: "node ports on loopback addresses", match: "-m conntrack --ctorigdst " + loopback[f]})
	return string(text.buf)
}

// pods matches the traffic of pods. It reports false where nothing tells that.
func (c *compiler) pods() (match rule, ok bool) {
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

// masqueradeInternal marks the clients of a ClusterIP that must come back through this node.
func (b *portCompiler) masqueradeInternal(text *chainText, f plan.Frontend) {
	r := rule{
		dst: host(f.Addr), proto: f.Protocol, comment: b.name + " " + words[plan.ClusterIP], port: f.Port, target: chainMark,
	}
	pod, other := b.Internal[plan.ClientPod], b.Internal[plan.ClientOutside]
	switch match, ok := b.pods(); {
	case pod.Masquerade:
		text.add(r)
	case !other.Masquerade || !ok:
	case match.src != "":
		r.src = not(match.src)
		text.add(r)
	case match.in != "":
		r.in = not(match.in)
		text.add(r)
	}
}
