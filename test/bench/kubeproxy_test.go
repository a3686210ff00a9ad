package bench

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"sluice/internal/lab"
	"sluice/internal/testkit/crowd"
)

// kubeProxy writes a crowd as kube-proxy's nftables mode does: a chain and an anonymous map for each Service, by nft.
// None of the endpoints is on this node, so the set of those that call themselves is empty, which Sluice's is not.
type kubeProxy struct {
	*testing.B
	crowd crowd.Crowd
	node  *lab.Host
	end   func()
}

// newKubeProxy is nil if there are more Services than the flag allows.
func newKubeProxy(b *testing.B, c crowd.Crowd) *kubeProxy {
	b.Helper()
	if c.Services > *kubeProxyMost {
		return nil
	}
	k := &kubeProxy{B: b, crowd: c}
	k.node, k.end = emptyNode(b)
	return k
}

func (k *kubeProxy) close() {
	if k != nil {
		k.end()
	}
}

// load measures the whole table, once, in one transaction as kube-proxy does it.
func (k *kubeProxy) load() []cost {
	if k == nil {
		return nil
	}
	k.Helper()
	text := kubeProxyTable(k.crowd, k.crowd.Services)[0]
	return []cost{measure(k.B, func() error { return runNFT(k.node, text) })}
}

// change measures one change, some times.
func (k *kubeProxy) change(ch change) (costs []cost) {
	if k == nil {
		return nil
	}
	k.Helper()
	for i := range slow {
		service := ch.of(k.crowd, i)
		var text string
		switch ch.kind {
		case changed:
			text = kubeProxyChain(k.crowd, service, 1)
		case added:
			text = kubeProxyService(k.crowd, service)
		case removed:
			text = kubeProxyRemove(service)
		}
		costs = append(costs, measure(k.B, func() error { return runNFT(k.node, text) }))
	}
	return costs
}

// runNFT has nft execute a text as one transaction.
func runNFT(node *lab.Host, text string) error {
	cmd := node.Command(context.Background(), "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(out[:min(len(out), 500)]))
	}
	return nil
}

// kubeProxyTable is the text of the whole table, in pieces of some Services each.
func kubeProxyTable(c crowd.Crowd, piece int) (texts []string) {
	for first := 0; first < c.Services; first += piece {
		var text strings.Builder
		if first == 0 {
			text.WriteString(kubeProxyBase)
		}
		for i := first; i < min(first+piece, c.Services); i++ {
			text.WriteString(kubeProxyService(c, i))
		}
		texts = append(texts, text.String())
	}
	return texts
}

// kubeProxyBase is all that does not depend on Services.
const kubeProxyBase = `
add table ip kube-proxy { comment "rules for kube-proxy" ; }
add set ip kube-proxy cluster-ips { type ipv4_addr ; comment "Active ClusterIPs" ; }
add set ip kube-proxy nodeport-ips { type ipv4_addr ; comment "IPs that accept NodePort traffic" ; }
add set ip kube-proxy hairpin-connections { type ipv4_addr . ipv4_addr . inet_proto . inet_service ; comment "service hairpin connections" ; }
add map ip kube-proxy service-ips { type ipv4_addr . inet_proto . inet_service : verdict ; comment "ClusterIP, ExternalIP and LoadBalancer IP traffic" ; }
add map ip kube-proxy service-nodeports { type inet_proto . inet_service : verdict ; comment "NodePort traffic" ; }
add map ip kube-proxy no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict ; }
add map ip kube-proxy no-endpoint-nodeports { type inet_proto . inet_service : verdict ; }
add map ip kube-proxy firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict ; }
add chain ip kube-proxy filter-prerouting-pre-dnat { type filter hook prerouting priority -110 ; }
add chain ip kube-proxy filter-output-pre-dnat { type filter hook output priority -110 ; }
add chain ip kube-proxy filter-input { type filter hook input priority 0 ; }
add chain ip kube-proxy filter-forward { type filter hook forward priority 0 ; }
add chain ip kube-proxy filter-output { type filter hook output priority 0 ; }
add chain ip kube-proxy nat-prerouting { type nat hook prerouting priority -100 ; }
add chain ip kube-proxy nat-output { type nat hook output priority -100 ; }
add chain ip kube-proxy nat-postrouting { type nat hook postrouting priority 100 ; }
add chain ip kube-proxy services
add chain ip kube-proxy masquerading
add chain ip kube-proxy cluster-ips-check
add chain ip kube-proxy service-endpoints-check
add chain ip kube-proxy nodeport-endpoints-check
add chain ip kube-proxy firewall-check
add chain ip kube-proxy reject-chain { comment "helper for @no-endpoint-services / @no-endpoint-nodeports" ; }
add rule ip kube-proxy filter-prerouting-pre-dnat ct state new jump firewall-check
add rule ip kube-proxy filter-output-pre-dnat ct state new jump firewall-check
add rule ip kube-proxy filter-input ct state new jump nodeport-endpoints-check
add rule ip kube-proxy filter-input ct state new jump service-endpoints-check
add rule ip kube-proxy filter-forward ct state new jump service-endpoints-check
add rule ip kube-proxy filter-forward ct state new jump cluster-ips-check
add rule ip kube-proxy filter-output ct state new jump service-endpoints-check
add rule ip kube-proxy filter-output ct state new jump cluster-ips-check
add rule ip kube-proxy nat-prerouting jump services
add rule ip kube-proxy nat-output jump services
add rule ip kube-proxy nat-postrouting jump masquerading
add rule ip kube-proxy services ip daddr @cluster-ips ip saddr != ` + clusterCIDR + ` mark set mark or 0x4000 comment "masquerade clusterIP traffic from outside cluster"
add rule ip kube-proxy services ip daddr . meta l4proto . th dport vmap @service-ips
add rule ip kube-proxy services ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
add rule ip kube-proxy masquerading mark and 0x4000 != 0 mark set mark xor 0x4000 masquerade fully-random
add rule ip kube-proxy masquerading ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random
add rule ip kube-proxy cluster-ips-check ip daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"
add rule ip kube-proxy service-endpoints-check ip daddr . meta l4proto . th dport vmap @no-endpoint-services
add rule ip kube-proxy nodeport-endpoints-check ip daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports
add rule ip kube-proxy firewall-check ip daddr . meta l4proto . th dport vmap @firewall-ips
add rule ip kube-proxy reject-chain reject
`

// kubeProxyName is that of a Service's chain, with a hash as long as kube-proxy's.
func kubeProxyName(i int) string {
	return fmt.Sprintf("service-%08X-default/service-%d/tcp/http", i, i)
}

// kubeProxyChain fills the chain of a Service, which may be there.
func kubeProxyChain(c crowd.Crowd, i, version int) string {
	var text strings.Builder
	name := kubeProxyName(i)
	fmt.Fprintf(&text, "add chain ip kube-proxy %[1]s\nflush chain ip kube-proxy %[1]s\n", name)
	fmt.Fprintf(&text, "add rule ip kube-proxy %s meta l4proto tcp dnat ip addr . port to numgen random mod %d map { ", name, c.Endpoints)
	for e := range c.Endpoints {
		fmt.Fprintf(&text, "%d : %s . %d , ", e, c.Endpoint(i, e, version), crowd.TargetPort)
	}
	text.WriteString("}\n")
	return text.String()
}

// kubeProxyService adds a Service.
func kubeProxyService(c crowd.Crowd, i int) string {
	return kubeProxyChain(c, i, 0) + fmt.Sprintf(`add element ip kube-proxy cluster-ips { %[1]s }
add element ip kube-proxy service-ips { %[1]s . tcp . %[2]d : goto %[3]s }
`, crowd.ClusterIP(i), crowd.Port, kubeProxyName(i))
}

// kubeProxyRemove removes a Service.
func kubeProxyRemove(i int) string {
	return fmt.Sprintf(`delete element ip kube-proxy service-ips { %[1]s . tcp . %[2]d }
delete element ip kube-proxy cluster-ips { %[1]s }
flush chain ip kube-proxy %[3]s
delete chain ip kube-proxy %[3]s
`, crowd.ClusterIP(i), crowd.Port, kubeProxyName(i))
}
