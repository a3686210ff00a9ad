// Package scenario replays files that say, in YAML and in flows, what a node must do.
//
// A file is a txtar archive: a description, whose first line is its title, then sections that are worked through in
// order, on one node with one way to answer (see package flow):
//
//	config.yaml    a KubeProxyConfiguration, whose mode does not count; without one, the policy of the reference cluster
//	nodes.yaml     the Nodes; without one, those of the reference cluster
//	addresses      what is on the node's interfaces; without one, its Node's internal addresses
//	host rules     for iptables-restore, in the kernel before anything else
//	objects.yaml   all Services and EndpointSlices from now on
//	flows          what must become of packets now
//	flows MODE…    the same in some modes alone, where modes differ as kube-proxy's do
//
// Modes differ in policy: in mode nftables, node ports answer at the primary addresses unless something else is
// configured, and cluster IPs are guarded. Each way has its mode's policy; the way "plan" has that of mode iptables.
//
// A line "not by WAY: REASON" in the description excuses one way. Invariant: every other way answers every flow.
package scenario
