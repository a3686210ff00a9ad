package convert

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sluice/internal/model"
)

// Node is what a Node means, or nil if it has no proper name. A wrong address or CIDR is left out.
func Node(in *corev1.Node) (*model.Node, []Problem) {
	n := &notes{}
	w := &wrong{notes: n}
	if w.unscopedName(in.Name, validation.IsDNS1123Subdomain); w.found {
		return nil, n.list
	}
	out := &model.Node{Name: in.Name, Zone: in.Labels[labelZone], PodCIDRs: podCIDRs(n, &in.Spec)}
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
