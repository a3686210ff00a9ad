package iptables

import (
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// loopback is what a family calls itself, as a match.
var loopback = [2]string{model.IPv4: "127.0.0.0/8", model.IPv6: "::1/128"}

const (
	toThisNode      = "-m addrtype --dst-type LOCAL"
	fromThisNode    = "-m addrtype --src-type LOCAL"
	notFromThisNode = "-m addrtype ! --src-type LOCAL"
)

const (
	nodePortsComment = "kubernetes service nodeports; NOTE: this must be the last rule in this chain"
	loopbackComment  = "loopback addresses are for this node alone"
)

// nodePort serves or refuses connections to a node port.
func (b *portCompiler) nodePort(f plan.Frontend) {
	if b.forwardsSome(f.Kind) {
		b.sections[natNodePorts].add(rule{
			proto: f.Protocol, comment: b.name, port: f.Port, target: prefixExternal + b.hash,
		})
	}
	target, comment := b.refusal(b.External[plan.ClientOutside])
	if target == "" {
		return
	}
	for _, m := range b.nodePortMatches() {
		m.proto, m.comment, m.port, m.target = f.Protocol, comment, f.Port, target
		b.sections[refuseNodePorts].add(m)
	}
}

// nodePortMatches match the addresses of this node that accept node ports.
func (c *compiler) nodePortMatches() (ms []rule) {
	serves := c.node.NodePorts[c.family]
	switch {
	case serves.All && serves.Loopback:
		return []rule{{match: toThisNode}}
	case serves.All:
		return []rule{{dst: not(loopback[c.family]), match: toThisNode}}
	}
	for _, a := range serves.Addresses {
		ms = append(ms, rule{dst: host(a)})
	}
	if serves.Loopback {
		ms = append(ms, rule{dst: loopback[c.family]})
	}
	return ms
}

// nodePortJumps end nat KUBE-SERVICES.
func (c *compiler) nodePortJumps() string {
	text := chainText{chain: chainServices}
	for _, m := range c.nodePortMatches() {
		m.comment, m.target = nodePortsComment, chainNodePorts
		text.add(m)
	}
	return string(text.buf)
}

// nodePortGuard begins nat KUBE-NODEPORTS. Node ports on loopback need route_localnet, which lets packets to loopback
// in from the network as well: these must not be taken for the node's own.
func (c *compiler) nodePortGuard() string {
	if !c.node.NodePorts[c.family].Loopback {
		return ""
	}
	return nodePortGuardRule(c.family)
}

func nodePortGuardRule(f model.Family) string {
	text := chainText{chain: chainNodePorts}
	text.add(rule{dst: loopback[f], comment: loopbackComment, match: notFromThisNode, target: "RETURN"})
	return string(text.buf)
}

// localhost reports whether there are node ports to be served on loopback addresses.
func (f *family) localhost() bool {
	return f.firewall != "" && slices.ContainsFunc(f.fragments, func(g *fragment) bool { return g.lines[natNodePorts] != "" })
}
