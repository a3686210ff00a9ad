package convert

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sluice/internal/model"
)

// taintLeaving is the key of the taint that the cluster autoscaler puts on a Node before it deletes the machine.
const taintLeaving = "ToBeDeletedByClusterAutoscaler"

// Node is what a Node means, or nil if it has no proper name. A wrong address or CIDR is left out.
func Node(in *corev1.Node) (*model.Node, []Problem) {
	n := &notes{}
	w := &wrong{notes: n}
	if w.unscopedName(in.Name, validation.IsDNS1123Subdomain); w.found {
		return nil, n.list
	}
	out := &model.Node{Name: in.Name, Zone: in.Labels[labelZone], PodCIDRs: podCIDRs(n, &in.Spec), Leaving: leaving(in)}
	for i, a := range in.Status.Addresses {
		if a.Type != corev1.NodeInternalIP && a.Type != corev1.NodeExternalIP {
			continue
		}
		addr, err := parseAddr(a.Address)
		switch {
		case err != nil:
			n.error(at("status.addresses", i)+".address", "%q: %v (left out)", a.Address, err)
		case a.Type == corev1.NodeInternalIP:
			out.InternalIPs = append(out.InternalIPs, addr)
		default:
			out.ExternalIPs = append(out.ExternalIPs, addr)
		}
	}
	return out, n.list
}

// leaving reports whether the Node will be gone soon.
func leaving(in *corev1.Node) bool {
	return !in.DeletionTimestamp.IsZero() || slices.ContainsFunc(in.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == taintLeaving
	})
}

// podCIDRs are those of spec.podCIDRs, or of spec.podCIDR in an object written without the list.
func podCIDRs(n *notes, spec *corev1.NodeSpec) []netip.Prefix {
	list, path := spec.PodCIDRs, func(i int) string { return at("spec.podCIDRs", i) }
	if len(list) == 0 && spec.PodCIDR != "" {
		list, path = []string{spec.PodCIDR}, func(int) string { return "spec.podCIDR" }
	}
	var out []netip.Prefix
	for i, text := range list {
		prefix, err := parsePrefix(text)
		if err != nil {
			n.error(path(i), "%q: %v (left out)", text, err)
			continue
		}
		out = append(out, prefix)
	}
	return out
}
