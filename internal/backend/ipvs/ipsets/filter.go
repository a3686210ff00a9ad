package ipsets

import (
	"sluice/internal/model"
)

// rejectWith is how REJECT is printed when nothing else was asked for.
var rejectWith = [2]string{
	model.IPv4: "REJECT --reject-with icmp-port-unreachable",
	model.IPv6: "REJECT --reject-with icmp6-port-unreachable",
}

// echo is a request that ping sends.
var echo = [2]rule{
	model.IPv4: {proto: "icmp", match: []string{"-m icmp --icmp-type 8"}},
	model.IPv6: {proto: "ipv6-icmp", match: []string{"-m icmp6 --icmpv6-type 128"}},
}

// filter says who is refused.
func (w *writer) filter() {
	w.access()
	w.sources("filter")
	w.refusals()
	w.begin("filter", chainNodePort)
	w.addFor(healthCheck, address, rule{proto: "tcp", target: "ACCEPT"})
	w.accepted()
	w.begin("filter", chainIPVSOut)
	w.add(rule{comment: refuseComment, match: []string{newConnections}, target: chainRefuse})
	w.forwarding()
}

// access is KUBE-IPVS-FILTER: addresses on the interface of ipvs are this node's, so that whatever listens at all of its
// addresses would answer there too.
func (w *writer) access() {
	w.begin("filter", chainIPVSFilter)
	for _, k := range addresses {
		w.addFor(k, addressPort, rule{target: "RETURN"})
	}
	w.addFor(healthCheck, address, rule{proto: "tcp", target: "RETURN"})
	ping := echo[w.family]
	ping.comment, ping.target = "ping of service addresses is answered", "RETURN"
	w.add(ping)
	w.addFor(ipvsIPs, address, rule{match: []string{newConnections}, target: rejectWith[w.family]})
}

// sources are KUBE-PROXY-FIREWALL and KUBE-SOURCE-RANGES-FIREWALL.
func (w *writer) sources(table string) {
	w.begin(table, chainProxyFirewall)
	w.addFor(loadBalancerFW, addressPort, rule{target: chainSourceRanges})
	w.begin(table, chainSourceRanges)
	w.addFor(loadBalancerSourceCIDR, addressPortSrc, rule{target: "RETURN"})
	w.addFor(loadBalancerSourceIP, addressPortSrc, rule{target: "RETURN"})
	w.add(rule{target: "DROP"})
}

// refusals are KUBE-IPVS-REFUSE: what has no virtual server, and clients outside where only others have one.
func (w *writer) refusals() {
	w.begin("filter", chainRefuse)
	outside, some := w.notFromPods()
	outside = outside.and(notFromThisNode)
	w.refuse(addressPort, rejectAddress, dropAddress, rule{})
	if some {
		w.refuse(addressPort, outsideRejectAddress, outsideDropAddress, outside)
	}
	if w.refusesNodePorts() {
		for _, k := range addresses { // an address's own port comes before a node port
			w.addFor(k, addressPort, rule{target: "RETURN"})
		}
		w.refuse("", rejectNodePort, dropNodePort, rule{})
		if some {
			w.refuse("", outsideRejectNodePort, outsideDropNodePort, outside)
		}
	}
	w.guard()
}

// refuse adds the rules of two kinds of sets, of node ports if no parts are named.
func (w *writer) refuse(parts string, reject, drop kind, who rule) {
	add := w.addForNodePorts
	if parts != "" {
		add = func(k kind, r rule) { w.addFor(k, parts, r) }
	}
	who.target = rejectWith[w.family]
	add(reject, who)
	who.target = "DROP"
	add(drop, who)
}

func (w *writer) refusesNodePorts() bool {
	for _, k := range [...]kind{rejectNodePort, dropNodePort, outsideRejectNodePort, outsideDropNodePort} {
		for _, p := range protocols {
			if w.has[k.ofProtocol(p)] {
				return true
			}
		}
	}
	return false
}

// guard drops what is for an address in a range of Services that none has.
func (w *writer) guard() {
	if !w.guards {
		return
	}
	for _, p := range w.node.ServiceCIDRs[w.family] {
		w.add(rule{
			dst: p.String(), comment: "no service has this address", target: "DROP",
			match: []string{"-m addrtype ! --dst-type LOCAL", w.notIn(ipvsIPs, address)},
		})
	}
}

// accepted is KUBE-IPVS-ACCEPT: what is for a Service comes by INPUT on its way to ipvs, and is none of the node's own
// that INPUT's policy is about.
func (w *writer) accepted() {
	w.begin("filter", chainAccept)
	for _, k := range addresses {
		w.addFor(k, addressPort, rule{target: "ACCEPT"})
	}
	w.addForNodePorts(nodePort, rule{target: "ACCEPT"})
}

// forwarding is KUBE-FORWARD. Packets that connection tracking does not know would not be rewritten back: the client would
// see the endpoint's address and reset its connection (kubernetes issue 74839).
func (w *writer) forwarding() {
	w.begin("filter", chainForwarding)
	if !w.opts.TCPBeLiberal {
		w.add(rule{match: []string{"-m conntrack --ctstate INVALID"}, target: "DROP"})
	}
	mark := w.opts.mark()
	w.add(rule{comment: forwardingComment, match: []string{"-m mark --mark " + mark + "/" + mark}, target: "ACCEPT"})
	w.add(rule{
		comment: "kubernetes forwarding conntrack rule", match: []string{"-m conntrack --ctstate RELATED,ESTABLISHED"}, target: "ACCEPT",
	})
}
