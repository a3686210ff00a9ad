package iptables

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"strings"

	"sluice/internal/plan"
)

// Table is one of the kernel's tables that Sluice writes.
type Table uint8

// The tables, in the order in which they are written: who is to be refused is refused before others are sent on.
const (
	Filter Table = iota
	Nat
	Mangle
)

// tables lists them all.
var tables = [...]Table{Filter, Nat, Mangle}

// String is the table's name.
func (t Table) String() string { return [...]string{"filter", "nat", "mangle"}[t] }

// Chains of the kernel.
const (
	chainInput       = "INPUT"
	chainForward     = "FORWARD"
	chainOutput      = "OUTPUT"
	chainPrerouting  = "PREROUTING"
	chainPostrouting = "POSTROUTING"
)

// Chains with a fixed name. CNI plugins and people's habits know them from kube-proxy.
const (
	chainServices      = "KUBE-SERVICES"          // nat and filter
	chainNodePorts     = "KUBE-NODEPORTS"         // nat and filter
	chainExternal      = "KUBE-EXTERNAL-SERVICES" // filter
	chainProxyFirewall = "KUBE-PROXY-FIREWALL"    // filter
	chainForwarding    = "KUBE-FORWARD"           // filter
	chainMasquerade    = "KUBE-POSTROUTING"       // nat
	chainMark          = "KUBE-MARK-MASQ"         // nat
	chainPing          = "KUBE-CLUSTER-PING"      // nat; Sluice's, only where cluster IPs answer
	chainCanary        = "KUBE-PROXY-CANARY"      // every table; kube-proxy looks whether it is still there
	// chainFirewall belongs to kubelet too, so only one rule in it is ours.
	chainFirewall = "KUBE-FIREWALL" // filter
)

// Prefixes of the chains of one Service port. A chain that begins with one of them is ours.
const (
	prefixCluster  = "KUBE-SVC-" // the endpoints on all nodes
	prefixLocal    = "KUBE-SVL-" // those on this node
	prefixExternal = "KUBE-EXT-" // where node ports, external and load balancer IPs lead
	prefixFirewall = "KUBE-FW-"  // a load balancer IP with source ranges
	prefixEndpoint = "KUBE-SEP-" // one endpoint, also the name of its list of clients
)

// ownChains are the chains with a fixed name that are ours alone.
var ownChains = [...]map[string]bool{
	Filter: {
		chainServices: true, chainNodePorts: true, chainExternal: true, chainProxyFirewall: true,
		chainForwarding: true, chainCanary: true,
	},
	Nat: {
		chainServices: true, chainNodePorts: true, chainMasquerade: true, chainMark: true, chainPing: true, chainCanary: true,
	},
	Mangle: {chainCanary: true},
}

// own reports whether a chain is ours alone.
func own(t Table, chain string) bool {
	if ownChains[t][chain] {
		return true
	}
	if t != Nat {
		return false
	}
	for _, p := range [...]string{prefixCluster, prefixLocal, prefixExternal, prefixFirewall, prefixEndpoint} {
		if strings.HasPrefix(chain, p) {
			return true
		}
	}
	return false
}

// portHash is the end of the names of a Service port's chains, as kube-proxy makes it.
func portHash(id plan.PortID) string { return hash(id.String() + id.Protocol.Lower()) }

// endpointChain is the name of the chain of one endpoint of a Service port.
func endpointChain(id plan.PortID, to netip.AddrPort) string {
	return prefixEndpoint + hash(id.String()+id.Protocol.Lower()+to.String())
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base32.StdEncoding.EncodeToString(sum[:])[:16]
}
