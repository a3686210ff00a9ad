package ipvs

import (
	"net/netip"
	"slices"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// node is what virtual servers need of this node.
type node struct {
	// addresses are those that the node has without us, sorted.
	addresses []netip.Addr
	// nodePorts are those that answer node ports. Loopback is never one: the kernel takes no packet from there to a
	// virtual server. Nor are link-local addresses of IPv6, as with kube-proxy: every interface of a pod has one.
	nodePorts [2][]netip.Addr
}

func newNode(n *plan.Node) *node {
	out := &node{addresses: n.Addresses}
	for _, a := range n.Addresses {
		f := model.FamilyOf(a)
		if linkLocal := a.Is6() && a.IsLinkLocalUnicast(); !linkLocal && !a.IsLoopback() && n.NodePorts[f].Serves(a) {
			out.nodePorts[f] = append(out.nodePorts[f], a)
		}
	}
	return out
}

// movedFrom are the addresses that only one of the two has.
func (n *node) movedFrom(o *node) (moved []netip.Addr) {
	for _, two := range [...][2]*node{{n, o}, {o, n}} {
		for _, a := range two[0].addresses {
			if !two[1].has(a) {
				moved = append(moved, a)
			}
		}
	}
	return moved
}

func (n *node) has(a netip.Addr) bool {
	_, has := slices.BinarySearchFunc(n.addresses, a, netip.Addr.Compare)
	return has
}

// binds reports whether the device is to have an address that a Service has: not if another interface has it.
func (n *node) binds(a netip.Addr) bool {
	return !n.has(a) && !a.IsLoopback() && !a.IsUnspecified()
}
