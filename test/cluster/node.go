package cluster

import (
	"encoding/json"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice/internal/kernel/link"
	"sluice/internal/kernel/netns"
	"sluice/internal/lab"
)

// Node is a machine that pods run on.
type Node struct {
	*lab.Host
	// Pods is the machine that has all pods of the node: dial from the address of any of them.
	Pods *lab.Host

	spec  NodeSpec
	index int
}

// Program returns a program to run on the node, with a /run that is the node's own, as it is on a real one. It dies
// with the test program.
func (n *Node) Program(name string, args ...string) *netns.Cmd {
	own := filepath.Join("/run/nodes", n.Name)
	const script = `mkdir -p "$0" && mount --bind "$0" /run && exec "$@"`
	cmd := n.Command(ctx(), "unshare", append([]string{"--mount", "sh", "-c", script, own, name}, args...)...)
	cmd.Env = os.Environ()
	return cmd
}

// object is the node as its kubelet registers it.
func (n *Node) object() *v1.Node {
	labels := map[string]string{v1.LabelHostname: n.Name, v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64"}
	if n.spec.Zone != "" {
		labels[v1.LabelTopologyZone] = n.spec.Zone
	}
	maps.Copy(labels, n.spec.Labels)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels}, Status: n.status(n.Addresses)}
	for _, p := range podRanges(n.index) {
		node.Spec.PodCIDRs = append(node.Spec.PodCIDRs, p.String())
	}
	node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
	return node
}

func (n *Node) status(addresses []netip.Addr) v1.NodeStatus {
	capacity := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourcePods: resource.MustParse("250"),
	}
	return v1.NodeStatus{
		Addresses:   nodeAddresses(n.Name, addresses),
		Capacity:    capacity,
		Allocatable: capacity,
		Conditions: []v1.NodeCondition{{
			Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}},
	}
}

func nodeAddresses(name string, addresses []netip.Addr) []v1.NodeAddress {
	all := []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}}
	for _, a := range addresses {
		all = append(all, v1.NodeAddress{Type: v1.NodeInternalIP, Address: a.String()})
	}
	return all
}

// SetNodeAddresses gives a node other InternalIPs, in this order: the machine gets those that it does not have, and the
// Node object says so. Addresses that the machine had stay on it, since the network reaches it by them.
func (c *Cluster) SetNodeAddresses(t testing.TB, node string, texts ...string) {
	t.Helper()
	n := c.Node(t, node)
	h, err := link.Open(n.Namespace().Fd())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	own := addresses(texts...)
	for _, a := range own {
		p := netip.PrefixFrom(a, a.BitLen())
		if err := h.AddAddress("eth0", p); err != nil {
			t.Fatal(err)
		}
		if err := c.Lab.Route(n.Host, p); err != nil {
			t.Fatal(err)
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": nodeAddresses(node, own)}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Client.CoreV1().Nodes().Patch(ctx(), node, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}
