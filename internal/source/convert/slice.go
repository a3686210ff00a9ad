package convert

import (
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sluice/internal/model"
)

// SliceOwner is the Service that an EndpointSlice says it belongs to; its Name is empty if it says none. It counts
// as a slice of that Service even where Slice is nil.
func SliceOwner(in *discoveryv1.EndpointSlice) model.Name {
	return model.Name{Namespace: NameOf(in.ObjectMeta).Namespace, Name: in.Labels[labelService]}
}

// Slice is what an EndpointSlice means, or nil if it has nothing to give: it is wrong, or belongs to no Service, or
// is one that a proxy has to leave alone.
func Slice(in *discoveryv1.EndpointSlice) (*model.Slice, []Problem) {
	w := &wrong{notes: &notes{}}
	s := &model.Slice{Name: w.name(in.ObjectMeta, validation.IsDNS1123Subdomain), Service: SliceOwner(in)}
	switch in.AddressType {
	case discoveryv1.AddressTypeIPv4:
		s.Family = model.IPv4
	case discoveryv1.AddressTypeIPv6:
		s.Family = model.IPv6
	case discoveryv1.AddressTypeFQDN:
		w.notice("addressType", "FQDN: not used, since a Service proxy forwards to IP addresses only")
		return nil, w.list
	default:
		w.skip("addressType", "%q: must be IPv4, IPv6 or FQDN", in.AddressType)
	}
	switch {
	case w.found:
		return nil, w.list
	case has(in.Labels, labelHeadless):
		return nil, w.list
	case s.Service.Name == "":
		w.notice("metadata.labels", "not used, since there is no label %s", labelService)
		return nil, w.list
	}
	s.Ports = slicePorts(w.notes, in.Ports)
	s.Endpoints = sliceEndpoints(w.notes, s.Family, in.Endpoints)
	return s, w.list
}

func slicePorts(n *notes, in []discoveryv1.EndpointPort) []model.SlicePort {
	var out []model.SlicePort
	names := map[string]bool{}
	for i := range in {
		field := at("ports", i)
		if in[i].Port == nil || *in[i].Port == 0 {
			n.notice(field+".port", "not used, since it has no number")
			continue
		}
		p, ok := endpointPort(n, field, orZero(in[i].Name), orZero(in[i].Protocol), *in[i].Port)
		if ok && names[p.Name] {
			n.error(field+".name", "%q: an earlier port has the same name (left out)", p.Name)
			continue
		}
		if ok {
			names[p.Name], out = true, append(out, p)
		}
	}
	return out
}

// endpointPort leaves out a wrong port: its endpoints then get no traffic.
func endpointPort(n *notes, field, name string, proto corev1.Protocol, port int32) (model.SlicePort, bool) {
	p, ok := protocol(proto)
	if !ok {
		n.error(field+".protocol", "%q: must be TCP, UDP or SCTP (left out)", proto)
		return model.SlicePort{}, false
	}
	if !validPort(port) {
		n.error(field+".port", "%d: %s (left out)", port, portRange)
		return model.SlicePort{}, false
	}
	return model.SlicePort{Name: shared(name), Protocol: p, Port: uint16(port)}, true
}

func sliceEndpoints(n *notes, family model.Family, in []discoveryv1.Endpoint) []model.Endpoint {
	out := make([]model.Endpoint, 0, len(in))
	for i := range in {
		field := at("endpoints", i) + ".addresses"
		if len(in[i].Addresses) == 0 {
			n.error(field, "required (left out)")
			continue
		}
		// An endpoint is one backend, however many addresses it has: kube-proxy sends to the first of them.
		text := in[i].Addresses[0]
		addr, err := usableAddr(text)
		switch {
		case err != nil:
			n.error(at(field, 0), "%q: %v (left out)", text, err)
		case model.FamilyOf(addr) != family:
			n.error(at(field, 0), "%q: not an %s address (left out)", text, family)
		default:
			e := sliceEndpoint(&in[i])
			e.Address, e.Hints = addr, hints(in[i].Hints, out)
			out = append(out, e)
		}
	}
	return out
}

func sliceEndpoint(in *discoveryv1.Endpoint) model.Endpoint {
	return model.Endpoint{
		Node:        shared(orZero(in.NodeName)),
		Pod:         podName(in.TargetRef),
		Ready:       in.Conditions.Ready == nil || *in.Conditions.Ready,
		Serving:     in.Conditions.Serving == nil || *in.Conditions.Serving,
		Terminating: orZero(in.Conditions.Terminating),
	}
}

// hints are those of an endpoint, or those of the one before it if they are the same, as they mostly are.
func hints(in *discoveryv1.EndpointHints, before []model.Endpoint) *model.Hints {
	if in == nil || len(in.ForZones)+len(in.ForNodes) == 0 {
		return nil
	}
	out := &model.Hints{}
	for _, z := range in.ForZones {
		out.Zones = append(out.Zones, shared(z.Name))
	}
	for _, n := range in.ForNodes {
		out.Nodes = append(out.Nodes, shared(n.Name))
	}
	if len(before) > 0 {
		last := before[len(before)-1].Hints
		if last != nil && slices.Equal(last.Zones, out.Zones) && slices.Equal(last.Nodes, out.Nodes) {
			return last
		}
	}
	return out
}

// shared is the same text, held once for all who have it: a node's name is that of thousands of endpoints.
func shared(s string) string { return unique.Make(s).Value() }

func podName(ref *corev1.ObjectReference) string {
	if ref == nil || ref.Kind != "Pod" {
		return ""
	}
	return ref.Name
}

func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
