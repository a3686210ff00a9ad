// Package bench measures a node with thousands of Services: in mode iptables beside what iptables-restore alone takes for
// the same rules, in mode nftables beside the bare cost of the same elements and beside kube-proxy's layout, in the same
// run, so that the ratios mean something on any machine; and mode userspace beside direct connections and mode nftables,
// and with as many connections as there may be. docs/benchmarks.md has a result.
//
// Nothing here passes or fails on time.
package bench
