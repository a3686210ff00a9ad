package convert

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sluice/internal/model"
)

// Endpoints is what legacy Endpoints mean: the Slices of the Service with the same name, one for each subset and
// family that has an address. They are named "NAME:endpoints:SUBSET:FAMILY", which no real object can be.
func Endpoints(in *corev1.Endpoints) ([]*model.Slice, []Problem) {
	w := &wrong{notes: &notes{}}
	service := w.name(in.ObjectMeta, validation.IsDNS1123Subdomain)
	if w.found {
		return nil, w.list
	}
	var out []*model.Slice
	for i := range in.Subsets {
		out = append(out, subset(w.notes, service, i, &in.Subsets[i])...)
	}
	return out, w.list
}

func subset(n *notes, service model.Name, i int, in *corev1.EndpointSubset) []*model.Slice {
	field := at("subsets", i)
	ports := subsetPorts(n, field+".ports", in.Ports)
	endpoints := subsetAddresses(n, field+".addresses", in.Addresses, true)
	endpoints = append(endpoints, subsetAddresses(n, field+".notReadyAddresses", in.NotReadyAddresses, false)...)
	var out []*model.Slice
	for _, f := range model.Families {
		s := &model.Slice{Name: derivedName(service, "endpoints", fmt.Sprint(i), f), Service: service, Family: f, Ports: ports}
		for _, e := range endpoints {
			if model.FamilyOf(e.Address) == f {
				s.Endpoints = append(s.Endpoints, e)
			}
		}
		if len(s.Endpoints) > 0 {
			out = append(out, s)
		}
	}
	return out
}

func subsetPorts(n *notes, field string, in []corev1.EndpointPort) []model.SlicePort {
	var out []model.SlicePort
	for i := range in {
		if p, ok := endpointPort(n, at(field, i), in[i].Name, in[i].Protocol, in[i].Port); ok {
			out = append(out, p)
		}
	}
	return out
}

func subsetAddresses(n *notes, field string, in []corev1.EndpointAddress, ready bool) []model.Endpoint {
	out := make([]model.Endpoint, 0, len(in))
	for i := range in {
		addr, err := usableAddr(in[i].IP)
		if err != nil {
			n.error(at(field, i)+".ip", "%q: %v (left out)", in[i].IP, err)
			continue
		}
		out = append(out, model.Endpoint{
			Address: addr, Node: shared(orZero(in[i].NodeName)), Pod: podName(in[i].TargetRef), Ready: ready, Serving: ready,
		})
	}
	return out
}

// derivedName names a Slice that comes from another kind of object. The colon keeps it apart from every real name.
func derivedName(service model.Name, from, which string, f model.Family) model.Name {
	return model.Name{
		Namespace: service.Namespace,
		Name:      service.Name + ":" + from + ":" + which + ":" + strings.ToLower(f.String()),
	}
}
