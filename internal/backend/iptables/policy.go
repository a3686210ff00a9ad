package iptables

import (
	"slices"

	"sluice/internal/plan"
)

var externalKinds = [...]plan.Kind{plan.ExternalIP, plan.LoadBalancerIP, plan.NodePort}

// policyChains makes the port's own chains: those of the lists that routes lead to, of the endpoints in them, and
// those by which external clients come.
func (b *portCompiler) policyChains() {
	external := b.has(externalKinds[:]...)
	if external && b.forwardsSome(plan.NodePort) {
		b.externalRules()
	}
	if b.has(plan.LoadBalancerIP) && b.firewalled(plan.LoadBalancerIP) {
		b.sourceRules()
	}
	var all []target
	for _, l := range [...]plan.List{plan.ListCluster, plan.ListLocal} {
		if b.has(plan.ClusterIP) && leadsTo(b.Internal, l) || external && leadsTo(b.External, l) {
			ts := targets(b.ID, b.Endpoints(l))
			b.listRules(l, ts)
			all = append(all, ts...)
		}
	}
	b.endpointChains(all)
}

// endpointChains makes those of endpoints in any list, once each.
func (b *portCompiler) endpointChains(all []target) {
	seen := make(map[string]bool, len(all))
	for _, t := range all {
		if !seen[t.chain] {
			seen[t.chain] = true
			b.endpointRules(t)
		}
	}
	b.endpoints = len(seen)
}

func leadsTo(routes plan.Access, l plan.List) bool {
	return slices.ContainsFunc(routes[:], func(r plan.Route) bool { return forwards(r) && r.List == l })
}

// externalRules make the chain at which connections to node ports, external and load balancer IPs begin: it sorts
// the clients by kind, where their routes differ.
func (b *portCompiler) externalRules() {
	text := &chainText{chain: prefixExternal + b.hash}
	pod, host, outside := b.External[plan.ClientPod], b.External[plan.ClientHost], b.External[plan.ClientOutside]
	if pod != outside || host != outside {
		if match, ok := b.pods(); ok {
			b.route(text, pod, match, "masquerade pod", "pod")
		}
		b.route(text, host, rule{match: fromThisNode}, "masquerade LOCAL", "route LOCAL")
	}
	b.route(text, outside, rule{}, "masquerade", "")
	b.chains = append(b.chains, text.done())
}

// route sends the clients that match the way of r. The words begin comments; without any there is none.
func (b *portCompiler) route(text *chainText, r plan.Route, match rule, masquerade, lead string) {
	if !forwards(r) {
		return
	}
	comment := " traffic for " + b.name + " external destinations"
	if r.Masquerade {
		match.comment, match.target = masquerade+comment, chainMark
		text.add(match)
	}
	match.comment, match.target = "", b.listChain(r.List)
	if lead != "" {
		match.comment = lead + comment
	}
	text.add(match)
}

// sourceRules make the chain at which connections to a load balancer IP with source ranges begin. Who is none of them
// gets back, keeps its destination, and so is dropped by KUBE-PROXY-FIREWALL.
func (b *portCompiler) sourceRules() {
	text := chainText{chain: prefixFirewall + b.hash}
	for _, s := range b.Sources {
		text.add(rule{src: s.String(), comment: b.name + " " + words[plan.LoadBalancerIP], target: prefixExternal + b.hash})
	}
	text.add(rule{comment: "other traffic to " + b.name + " will be dropped by " + chainProxyFirewall})
	b.chains = append(b.chains, text.done())
}
