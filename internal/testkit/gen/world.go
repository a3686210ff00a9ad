package gen

import (
	"net/netip"

	"pgregory.net/rapid"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Node is the name of the node that plans are made for.
const Node = "node-a"

const neighbour = "node-b"

// byFamily are addresses of the world, by family.
type byFamily [2][]string

func pools() (w struct{ node, pods, neighbourPods, clusterIPs, nobodysIPs, publicIPs, clients byFamily }) {
	w.node = byFamily{{"192.168.10.11", "172.20.0.11", "10.244.1.1"}, {"fd00:10::11", "fd00:244:1::1"}}
	w.pods = byFamily{{"10.244.1.5", "10.244.1.6", "10.244.1.7"}, {"fd00:244:1::5", "fd00:244:1::6"}}
	w.neighbourPods = byFamily{{"10.244.2.5", "10.244.2.6", "10.244.2.7"}, {"fd00:244:2::5", "fd00:244:2::6"}}
	w.clusterIPs = byFamily{{"10.96.0.1", "10.96.0.2", "10.96.0.3"}, {"fd00:96::1", "fd00:96::2"}}
	w.nobodysIPs = byFamily{{"10.96.0.99", "198.51.100.99"}, {"fd00:96::99", "2001:db8::99"}}
	w.publicIPs = byFamily{{"198.51.100.1", "198.51.100.2", "192.168.10.11"}, {"2001:db8::1", "fd00:10::11"}}
	w.clients = byFamily{{"203.0.113.5", "192.0.2.9", "192.168.10.99"}, {"2001:db8:5::5", "fd00:10::99"}}
	return w
}

// pick draws one of the addresses of a family.
func pick(t *rapid.T, pool byFamily, f model.Family, label string) netip.Addr {
	return netip.MustParseAddr(rapid.SampledFrom(pool[f]).Draw(t, label))
}

// Config draws a policy for the node. Whether cluster IPs are guarded is for the caller to say, who knows the mode.
func Config(t *rapid.T) plan.Config {
	cfg := plan.Config{
		NodeName:            Node,
		DetectLocal:         rapid.SampledFrom(detectModes[:]).Draw(t, "detect"),
		BridgeInterface:     "cbr0",
		InterfaceNamePrefix: "cali",
		LocalhostNodePorts:  rapid.Bool().Draw(t, "localhostNodePorts"),
		MasqueradeAll:       rapid.IntRange(0, 3).Draw(t, "masqueradeAll") == 0,
	}
	if rapid.IntRange(0, 3).Draw(t, "clusterCIDR") > 0 {
		cfg.ClusterCIDRs = prefixes("10.244.0.0/16", "fd00:244::/32")
	}
	cfg.NodePortAddresses = rapid.SampledFrom([]plan.NodePortAddresses{
		{}, {}, {All: true}, {Primary: true}, {Localhost: true, Primary: true}, {Prefixes: prefixes("172.16.0.0/12", "127.0.0.0/8", "fd00:10::/64")},
	}).Draw(t, "nodePortAddresses")
	return cfg
}

var detectModes = [...]plan.DetectMode{
	plan.DetectClusterCIDR, plan.DetectNodeCIDR, plan.DetectBridgeInterface, plan.DetectInterfaceNamePrefix,
}

// Host draws what the kernel says of the node: its addresses, at times with a cluster IP among them, as another
// proxy leaves them behind.
func Host(t *rapid.T) plan.Host {
	w := pools()
	var h plan.Host
	for _, f := range model.Families {
		for _, a := range w.node[f] {
			h.Addresses = append(h.Addresses, netip.MustParseAddr(a))
		}
		if rapid.IntRange(0, 9).Draw(t, "leftover") == 0 {
			h.Addresses = append(h.Addresses, pick(t, w.clusterIPs, f, "leftover address"))
		}
	}
	return h
}

// Nodes are both nodes, in zones that are drawn.
func Nodes(t *rapid.T) map[string]*model.Node {
	zone := func() string { return rapid.SampledFrom([]string{"", "zone-1", "zone-2"}).Draw(t, "zone") }
	return map[string]*model.Node{
		Node: {
			Name: Node, Zone: zone(), PodCIDRs: prefixes("10.244.1.0/24", "fd00:244:1::/48"),
			InternalIPs: []netip.Addr{netip.MustParseAddr("192.168.10.11"), netip.MustParseAddr("fd00:10::11")},
		},
		neighbour: {Name: neighbour, Zone: zone()},
	}
}

// ServiceCIDRs are ranges around the cluster IPs, or some of them, or around the addresses that clients outside use.
func ServiceCIDRs(t *rapid.T) map[string]*model.ServiceCIDR {
	all := map[string]*model.ServiceCIDR{}
	for _, name := range []string{"a", "b"} {
		all[name] = rapid.SampledFrom([]*model.ServiceCIDR{
			{Name: name, Prefixes: prefixes("10.96.0.0/16", "fd00:96::/112")},
			{Name: name, Prefixes: prefixes("10.96.0.0/30", "198.51.100.0/24", "2001:db8::/64")},
			{Name: name},
		}).Draw(t, "ServiceCIDR")
	}
	return all
}

func prefixes(texts ...string) (ps []netip.Prefix) {
	for _, text := range texts {
		ps = append(ps, netip.MustParsePrefix(text))
	}
	return ps
}
