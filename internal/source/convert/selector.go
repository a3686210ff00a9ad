package convert

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"sluice/internal/model"
)

// Selector is how a Service finds its Pods.
type Selector struct {
	Service model.Name
	Labels  map[string]string
	// Families are those that endpoints are wanted of.
	Families []model.Family
	// PublishNotReady counts every Pod as ready.
	PublishNotReady bool
	Ports           []TargetPort
}

// TargetPort is where a Service port leads to in a Pod.
type TargetPort struct {
	Name     string // of the Service port
	Protocol model.Protocol
	Number   uint16 // 0: by name
	Target   string // the name of a container port
}

// SelectorOf is the selector of a Service that Service accepts, or nil if it selects nothing or is not proxied.
func SelectorOf(in *corev1.Service) *Selector {
	addrs, headless := clusterIPs(&wrong{notes: &notes{}}, &in.Spec)
	if len(in.Spec.Selector) == 0 || headless || in.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	s := &Selector{
		Service:         NameOf(in.ObjectMeta),
		Labels:          in.Spec.Selector,
		Families:        families(addrs, in.Spec.IPFamilies),
		PublishNotReady: in.Spec.PublishNotReadyAddresses,
	}
	for i := range in.Spec.Ports {
		s.Ports = append(s.Ports, targetPort(&in.Spec.Ports[i]))
	}
	return s
}

// families are those of the Service's cluster IPs, or else those that it asks for, or else both.
func families(clusterIPs []netip.Addr, asked []corev1.IPFamily) []model.Family {
	var out []model.Family
	for _, f := range model.Families {
		inUse := slices.ContainsFunc(clusterIPs, func(a netip.Addr) bool { return model.FamilyOf(a) == f })
		if inUse || (len(clusterIPs) == 0 && slices.Contains(asked, corev1.IPFamily(f.String()))) {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return model.Families[:]
	}
	return out
}

func targetPort(in *corev1.ServicePort) TargetPort {
	proto, _ := protocol(in.Protocol)
	t := TargetPort{Name: in.Name, Protocol: proto}
	switch {
	case in.TargetPort.Type == intstr.String && in.TargetPort.StrVal != "":
		t.Target = in.TargetPort.StrVal
	case in.TargetPort.IntVal != 0:
		t.Number = uint16(in.TargetPort.IntVal)
	default:
		t.Number = uint16(in.Port)
	}
	return t
}

// Matches reports whether a Pod is one of the Service's endpoints, ready or not.
func (s *Selector) Matches(p *Pod) bool {
	if p.Finished || p.Name.Namespace != s.Service.Namespace {
		return false
	}
	for k, v := range s.Labels {
		if have, ok := p.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// PodSlices are the Slices that the given Pods make for a Service: one for each family and set of port numbers, so
// that Pods whose named ports differ are kept apart. The Pods are those that match, in any order; it does not show in
// the result. A Slice is named "SERVICE:pods:PORTS:FAMILY".
func PodSlices(s *Selector, pods []*Pod) ([]*model.Slice, []Problem) {
	pods = slices.SortedFunc(slices.Values(pods), func(a, b *Pod) int { return a.Name.Compare(b.Name) })
	n := &notes{}
	found := map[model.Name]*model.Slice{}
	var out []*model.Slice
	for _, p := range pods {
		ports := resolve(n, s, p)
		if len(ports) == 0 {
			continue
		}
		for _, f := range s.Families {
			if !p.Addresses[f].IsValid() {
				continue
			}
			name := derivedName(s.Service, "pods", portList(ports), f)
			slice := found[name]
			if slice == nil {
				slice = &model.Slice{Name: name, Service: s.Service, Family: f, Ports: ports}
				found[name], out = slice, append(out, slice)
			}
			slice.Endpoints = append(slice.Endpoints, podEndpoint(s, p, f))
		}
	}
	return out, n.list
}

func podEndpoint(s *Selector, p *Pod, f model.Family) model.Endpoint {
	return model.Endpoint{
		Address:     p.Addresses[f],
		Node:        p.Node,
		Pod:         p.Name.Name,
		Ready:       s.PublishNotReady || (p.Ready && !p.Terminating),
		Serving:     p.Ready,
		Terminating: p.Terminating,
	}
}

// resolve finds the number of each port in a Pod, and leaves out a port that the Pod does not have.
func resolve(n *notes, s *Selector, p *Pod) []model.SlicePort {
	var out []model.SlicePort
	for i, t := range s.Ports {
		number := t.Number
		if number == 0 {
			number = p.port(t.Target, t.Protocol)
		}
		if number == 0 {
			n.warn(at("spec.ports", i)+".targetPort", "%s: Pod %s has no %s port of that name", t.Target, p.Name, t.Protocol)
			continue
		}
		out = append(out, model.SlicePort{Name: t.Name, Protocol: t.Protocol, Port: number})
	}
	return out
}

// port is the number of a named port, or 0.
func (p *Pod) port(name string, proto model.Protocol) uint16 {
	for _, c := range p.Ports {
		if c.Name == name && c.Protocol == proto {
			return c.Port
		}
	}
	return 0
}

// portList writes the ports so that different lists give different texts.
func portList(ports []model.SlicePort) string {
	var b strings.Builder
	for i, p := range ports {
		if i > 0 {
			b.WriteByte(',')
		}
		if p.Name != "" {
			b.WriteString(p.Name + "=")
		}
		fmt.Fprint(&b, p.Port)
	}
	return b.String()
}
