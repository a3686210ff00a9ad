// Package ipsets is the netfilter half of mode ipvs in the form of iptables, for kernels without nf_tables: kube-proxy's
// chains and KUBE-* sets, and what these leave open.
//
// The number of rules does not grow with Services: what differs from one to the next is in sets. Virtual servers do the
// balancing (package ipvs); the rules here say whose source is rewritten, who is refused, and who is served by the
// endpoints of this node alone.
//
// # Where a packet meets them
//
// From the network: mangle PREROUTING marks clients outside whose route is another than that of pods and of the node, for
// a virtual server of that mark; nat PREROUTING marks who is to be masqueraded; filter INPUT refuses; then ipvs picks an
// endpoint (its hook in INPUT comes behind filter) and sends the packet through OUTPUT and POSTROUTING, where it is
// masqueraded. From the node itself: mangle OUTPUT drops sources that a load balancer IP does not answer, which no later
// table can, since ipvs picks an endpoint right behind nat OUTPUT. A packet without a virtual server keeps its
// destination, so filter OUTPUT refuses it.
//
// # Where it differs from kube-proxy
//
//   - A route that refuses has sets of its own (KUBE-REJECT…, KUBE-DROP…).
//   - The node itself is masqueraded also with externalTrafficPolicy Local.
//   - Invalid packets are dropped in KUBE-FORWARD, as in mode iptables.
//   - ICMP echo at a Service's address is answered, and INPUT accepts what is for a Service, whatever its policy.
//   - KUBE-LOOP-BACK holds the endpoints of all nodes.
//   - In KUBE-SERVICES node ports come last, behind addresses whose port has such a number.
//   - There is no rule with -m physdev: it loads br_netfilter, and the one behind it takes the same packets.
package ipsets
