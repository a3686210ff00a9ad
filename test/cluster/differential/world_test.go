package differential_test

import (
	"fmt"
	"net/netip"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"sluice/internal/lab"
	"sluice/internal/model"
	"sluice/test/cluster"
)

// The ports that endpoints may have. Every pod and every node answers there.
var targetPorts = []uint16{8080, 8081}

// world is a cluster with both proxies.
type world struct {
	*cluster.Cluster
	mode      string
	sides     [2]*side // Sluice's, upstream's
	elsewhere *cluster.Node
}

// side is a node with a proxy.
type side struct {
	*cluster.Node
	proxy *cluster.Proxy
	other *cluster.Node // the other side's
}

// newWorld starts the cluster, its servers and the proxies.
func newWorld(t *testing.T, mode string) *world {
	t.Helper()
	c := cluster.Start(t, cluster.Options{Nodes: []cluster.NodeSpec{
		{Name: "sluice", Zone: "zone-a"}, {Name: "upstream", Zone: "zone-a"}, {Name: "elsewhere", Zone: "zone-b"},
	}})
	admin := c.Config()
	admin.WarningHandler = rest.NoWarnings{} // of externalIPs
	var err error
	if c.Client, err = kubernetes.NewForConfig(admin); err != nil {
		t.Fatal(err)
	}
	w := &world{Cluster: c, mode: mode, elsewhere: c.Node(t, "elsewhere")}
	s, u := c.Node(t, "sluice"), c.Node(t, "upstream")
	w.sides = [2]*side{{Node: s, other: u}, {Node: u, other: s}}
	for _, n := range w.nodes() {
		serve(t, n.Pods, model.TCP, model.UDP, model.SCTP)
		serve(t, n.Host, model.TCP, model.UDP)
	}
	quick := cluster.ProxyOptions{Mode: mode, Config: "iptables: {minSyncPeriod: 100ms}\nnftables: {minSyncPeriod: 100ms}\n"}
	w.sides[0].proxy = c.StartSluice(t, s.Name, quick)
	w.sides[1].proxy = c.StartKubeProxy(t, u.Name, quick)
	for _, s := range w.sides {
		s.proxy.WaitSynced(t)
	}
	return w
}

func serve(t *testing.T, h *lab.Host, protocols ...model.Protocol) {
	t.Helper()
	for _, p := range protocols {
		for _, port := range targetPorts {
			if _, err := h.ServeAll(p, port); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// nodes are all of them, in the order in which they have their addresses.
func (w *world) nodes() []*cluster.Node {
	return []*cluster.Node{w.sides[0].Node, w.sides[1].Node, w.elsewhere}
}

// pod is the address of a node's pod, by its number.
func (w *world) pod(n *cluster.Node, f model.Family, number byte) netip.Addr {
	for i, known := range w.nodes() {
		if known == n {
			bytes := podRange(i, f).Addr().AsSlice()
			bytes[len(bytes)-1] = number
			a, _ := netip.AddrFromSlice(bytes)
			return a
		}
	}
	return netip.Addr{}
}

// podRange is where the pods of the i-th node are.
func podRange(i int, f model.Family) netip.Prefix {
	if f == model.IPv4 {
		return netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", i+1))
	}
	return netip.MustParsePrefix(fmt.Sprintf("fd00:244:0:%d::/64", i+1))
}

// name is what an address is to a side.
func (w *world) name(s *side, a netip.Addr) string {
	f := model.FamilyOf(a)
	for i, n := range w.nodes() {
		switch {
		case n.Address(f) == a:
			return "the machine " + s.place(n)
		case podRange(i, f).Contains(a):
			bytes := a.AsSlice()
			return fmt.Sprintf("pod %d %s", bytes[len(bytes)-1], s.place(n))
		}
	}
	return a.String()
}

// place is where a node is, seen from the side.
func (s *side) place(n *cluster.Node) string {
	switch n {
	case s.Node:
		return "here"
	case s.other:
		return "there"
	}
	return "elsewhere"
}
