package ipsets

import "strings"

// Chains of the kernel.
const (
	chainInput       = "INPUT"
	chainForward     = "FORWARD"
	chainOutput      = "OUTPUT"
	chainPrerouting  = "PREROUTING"
	chainPostrouting = "POSTROUTING"
)

// kernelChains are those in which we have jumps.
var kernelChains = [...]string{chainInput, chainForward, chainOutput, chainPrerouting, chainPostrouting}

// tableNames are the tables that are written, in that order: who is to be refused is refused before others are sent on, and
// clients outside are marked before table nat has none but virtual servers pick an endpoint. A legacy kernel changes one
// after the other.
var tableNames = [...]string{"filter", "mangle", "nat"}

// Chains of kube-proxy that mode iptables has as well, under the same names.
const (
	chainServices      = "KUBE-SERVICES"
	chainMasquerade    = "KUBE-POSTROUTING"
	chainMark          = "KUBE-MARK-MASQ"
	chainProxyFirewall = "KUBE-PROXY-FIREWALL"
	chainForwarding    = "KUBE-FORWARD"
)

// Chains of mode ipvs alone; the last three are Sluice's.
const (
	chainLoadBalancer = "KUBE-LOAD-BALANCER"
	chainNodePort     = "KUBE-NODE-PORT" // in nat and filter
	chainSourceRanges = "KUBE-SOURCE-RANGES-FIREWALL"
	chainIPVSFilter   = "KUBE-IPVS-FILTER"
	chainIPVSOut      = "KUBE-IPVS-OUT-FILTER"
	chainRefuse       = "KUBE-IPVS-REFUSE"
	chainAccept       = "KUBE-IPVS-ACCEPT"
	chainMarkOutside  = "KUBE-IPVS-MARK"
)

// ownChains are the chains of this mode, by table.
var ownChains = map[string][]string{
	"filter": {chainIPVSFilter, chainProxyFirewall, chainSourceRanges, chainRefuse, chainNodePort, chainAccept, chainForwarding, chainIPVSOut},
	"nat":    {chainServices, chainLoadBalancer, chainNodePort, chainMark, chainMasquerade},
	"mangle": {chainMarkOutside, chainProxyFirewall, chainSourceRanges},
}

// sharedChains are those that mode iptables has as well.
var sharedChains = map[string][]string{
	"filter": {chainProxyFirewall, chainForwarding},
	"nat":    {chainServices, chainMark, chainMasquerade},
}

// foreignChains are those of mode iptables alone, which has no use for them while this one is at work; a name that ends
// in "-" is the beginning of many.
var foreignChains = map[string][]string{
	"filter": {"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-CANARY"},
	"nat": {
		"KUBE-NODEPORTS", "KUBE-CLUSTER-PING", "KUBE-PROXY-CANARY", "KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-FW-", "KUBE-SEP-",
	},
	"mangle": {"KUBE-PROXY-CANARY"},
}

// isOf reports whether a chain is one of those listed for its table.
func isOf(list map[string][]string, table, chain string) bool {
	for _, name := range list[table] {
		if chain == name || strings.HasSuffix(name, "-") && strings.HasPrefix(chain, name) {
			return true
		}
	}
	return false
}
