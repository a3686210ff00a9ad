package iptables

import (
	"sluice/internal/model"
	"sluice/internal/plan"
)

// rejectWith is how REJECT is printed when nothing else was asked for.
var rejectWith = [2]string{
	model.IPv4: "REJECT --reject-with icmp-port-unreachable",
	model.IPv6: "REJECT --reject-with icmp6-port-unreachable",
}

// refusal is the target and the comment of a rule that refuses, empty if the route leads on.
func (b *portCompiler) refusal(r plan.Route) (target, comment string) {
	switch r.Action {
	case plan.Reject:
		return rejectWith[b.family], b.name + " has no endpoints"
	case plan.Drop:
		return "DROP", b.name + " has no local endpoints"
	}
	return "", ""
}

// refuse writes what becomes of a connection that nat has sent nowhere: what does not come back with another
// destination, it refuses. Clients for whom nat has a way never get here, so that the route of the others counts.
func (b *portCompiler) refuse(f plan.Frontend) {
	to := rule{dst: host(f.Addr), proto: f.Protocol, port: f.Port}
	if b.firewalled(f.Kind) {
		to.comment, to.target = b.name+" traffic not accepted by "+prefixFirewall+b.hash, "DROP"
		b.sections[refuseSources].add(to)
	}
	to.target, to.comment = b.refusal(b.Access(f.Kind)[plan.ClientOutside])
	switch {
	case to.target == "":
	case f.Kind == plan.LoadBalancerIP && b.Sources != nil && !b.firewalled(f.Kind):
		b.refuseBySource(to)
	case f.Kind == plan.ClusterIP:
		b.sections[refuseClusterIPs].add(to)
		if b.node.IsLocal(f.Addr) {
			b.sections[refuseAddresses].add(to) // it comes by INPUT, which does not lead to KUBE-SERVICES
		}
	default:
		b.sections[refuseAddresses].add(to)
	}
}

// refuseBySource tells only those that there are no endpoints who may know that there is a Service.
func (b *portCompiler) refuseBySource(to rule) {
	for _, s := range b.Sources {
		allowed := to
		allowed.src = s.String()
		b.sections[refuseAddresses].add(allowed)
	}
	to.comment, to.target = b.name+" traffic from other sources", "DROP"
	b.sections[refuseAddresses].add(to)
}

// forwardingRules are filter KUBE-FORWARD: they let through what Sluice has rewritten even where the policy of
// FORWARD is DROP. The first stops packets that connection tracking does not know, since it would not rewrite them
// back: the client would see the endpoint's address and reset its connection (kubernetes issue 74839).
func (c *compiler) forwardingRules() chain {
	text := chainText{chain: chainForwarding}
	if !c.opts.TCPBeLiberal {
		text.buf = append(text.buf, invalidRule(c.family)...)
	}
	mark := c.opts.mark()
	text.add(rule{comment: forwardingComment, match: "-m mark --mark " + mark + "/" + mark, target: "ACCEPT"})
	text.add(rule{
		comment: "kubernetes forwarding conntrack rule", match: "-m conntrack --ctstate RELATED,ESTABLISHED", target: "ACCEPT",
	})
	return text.done()
}

func invalidRule(model.Family) string {
	text := chainText{chain: chainForwarding}
	text.add(rule{match: "-m conntrack --ctstate INVALID", target: "DROP"})
	return string(text.buf)
}

// firewallRules are ours in filter KUBE-FIREWALL: see nodePortGuard.
func (c *compiler) firewallRules() string {
	if !c.node.NodePorts[c.family].Loopback {
		return ""
	}
	return guardRule(c.family)
}

// guardRule is the rule in KUBE-FIREWALL that kubelet writes as well.
func guardRule(f model.Family) string {
	text := chainText{chain: chainFirewall}
	text.add(rule{
		src: not(loopback[f]), dst: loopback[f], comment: "block incoming localnet connections",
		match: "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT", target: "DROP",
	})
	return string(text.buf)
}
