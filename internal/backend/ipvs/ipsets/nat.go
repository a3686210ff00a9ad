package ipsets

// nat says whose source is rewritten.
func (w *writer) nat() {
	w.services()
	w.loadBalancers()
	w.nodePorts()
	mark := w.opts.mark()
	w.begin("nat", chainMark)
	w.add(rule{target: "MARK --set-xmark " + mark + "/" + mark})
	w.begin("nat", chainMasquerade)
	w.addFor(loopBack, addressPortSrc, rule{target: "MASQUERADE"})
	w.add(rule{match: []string{"-m mark ! --mark " + mark + "/" + mark}, target: "RETURN"})
	w.add(rule{target: "MARK --set-xmark " + mark + "/0x0"})
	w.add(rule{comment: "kubernetes service traffic requiring SNAT", target: "MASQUERADE --random-fully"})
}

// services are nat KUBE-SERVICES. An address of a Service is the node's as well, so that node ports come last: its port
// may have the number of one.
func (w *writer) services() {
	w.begin("nat", chainServices)
	w.add(rule{src: loopbackRange[w.family], target: "RETURN"})
	w.addFor(loadBalancer, addressPort, rule{target: chainLoadBalancer})
	w.clusterIPs()
	w.addFor(externalIP, addressPort, rule{target: chainMark})
	w.addFor(externalIP, addressPort, rule{match: []string{toThisNode}, target: "ACCEPT"})
	w.markNode(externalIPLocal)
	w.addFor(externalIPLocal, addressPort, rule{match: []string{toThisNode}, target: "ACCEPT"})
	w.addFor(clusterIP, addressPort, rule{target: "ACCEPT"})
	w.addFor(loadBalancer, addressPort, rule{target: "ACCEPT"})
	w.nodePortJumps()
}

// clusterIPs marks the clients of cluster IPs that must come back through this node. Where nothing tells pods from
// others that is the node itself, which connects from the address that it connects to: ipvs has that on an interface.
func (w *writer) clusterIPs() {
	r, others := w.notFromPods()
	r.target = chainMark
	switch {
	case w.masqueradeAll:
		w.addFor(clusterIP, addressPort, rule{target: chainMark})
	case !w.detect.Implemented():
		w.addFor(clusterIP, "src,dst", rule{target: chainMark})
	case others:
		w.addFor(clusterIP, addressPort, r)
	}
}

// markNode masquerades the node's own connections, whose replies would not come back through ipvs otherwise. Others that
// are in this set keep their address.
func (w *writer) markNode(k kind) {
	if r, others := w.notFromPods(); others {
		r.target = chainMark
		w.addFor(k, addressPort, r.and(fromThisNode))
	}
}

// nodePortJumps lead to KUBE-NODE-PORT.
func (w *writer) nodePortJumps() {
	if serves := w.node.NodePorts[w.family]; !serves.All {
		for _, a := range serves.Addresses {
			w.add(rule{dst: host(a), target: chainNodePort})
		}
		return
	}
	w.add(rule{match: []string{toThisNode}, target: chainNodePort})
}

// loadBalancers are nat KUBE-LOAD-BALANCER.
func (w *writer) loadBalancers() {
	w.begin("nat", chainLoadBalancer)
	w.markNode(loadBalancerLocal)
	w.addFor(loadBalancerLocal, addressPort, rule{target: "RETURN"})
	w.add(rule{target: chainMark})
}

// nodePorts are nat KUBE-NODE-PORT.
func (w *writer) nodePorts() {
	w.begin("nat", chainNodePort)
	node, others := w.notFromPods()
	for _, p := range protocols {
		parts, local := partsOf(p), nodePortLocal.ofProtocol(p)
		node.proto = p.Lower()
		if node.target = chainMark; others {
			w.addFor(local, parts, node.and(fromThisNode))
		}
		w.addFor(local, parts, rule{proto: p.Lower(), target: "RETURN"})
		w.addFor(nodePort.ofProtocol(p), parts, rule{proto: p.Lower(), target: chainMark})
	}
}
