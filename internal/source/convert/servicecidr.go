package convert

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sluice/internal/model"
)

// ServiceCIDR is what a ServiceCIDR means, or nil if it has no proper name. A wrong CIDR is left out, and so is one of
// all addresses: what is in a range and no Service's is dropped, which would be everything.
func ServiceCIDR(in *networkingv1.ServiceCIDR) (*model.ServiceCIDR, []Problem) {
	w := &wrong{notes: &notes{}}
	if w.unscopedName(in.Name, validation.IsDNS1123Subdomain); w.found {
		return nil, w.list
	}
	out := &model.ServiceCIDR{Name: in.Name}
	for i, text := range in.Spec.CIDRs {
		field := at("spec.cidrs", i)
		prefix, err := parsePrefix(text)
		switch {
		case err != nil:
			w.error(field, "%q: %v (left out)", text, err)
		case prefix.Bits() == 0:
			w.error(field, "%q: must not be all addresses (left out)", text)
		default:
			out.Prefixes = append(out.Prefixes, prefix)
		}
	}
	return out, w.list
}
