package convert

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sluice/internal/model"
)

// Pod is what a Service's endpoints need to know of a Pod.
type Pod struct {
	Name   model.Name
	Labels map[string]string
	Node   string
	// Addresses has one address of each family at most; the zero Addr is none.
	Addresses [len(model.Families)]netip.Addr
	// Ready is the Pod's own condition; a Pod without one is not ready.
	Ready       bool
	Terminating bool
	// Finished Pods serve nothing any more.
	Finished bool
	Ports    []ContainerPort
}

// ContainerPort is a port that a container of a Pod declares.
type ContainerPort struct {
	Name     string
	Protocol model.Protocol
	Port     uint16
}

// PodOf is what a Pod means, or nil if it has no proper name. A wrong address or port is left out.
func PodOf(in *corev1.Pod) (*Pod, []Problem) {
	w := &wrong{notes: &notes{}}
	p := &Pod{
		Name:        w.name(in.ObjectMeta, validation.IsDNS1123Subdomain),
		Labels:      in.Labels,
		Node:        shared(in.Spec.NodeName),
		Ready:       podReady(&in.Status),
		Terminating: in.DeletionTimestamp != nil,
		Finished:    in.Status.Phase == corev1.PodFailed || in.Status.Phase == corev1.PodSucceeded,
		Ports:       containerPorts(&in.Spec),
	}
	if w.found {
		return nil, w.list
	}
	podAddresses(w.notes, p, &in.Status)
	return p, w.list
}

func podReady(status *corev1.PodStatus) bool {
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.PodReady {
			return status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// podAddresses takes the first address of each family from status.podIPs, or status.podIP where there is no list.
func podAddresses(n *notes, p *Pod, status *corev1.PodStatus) {
	list, path := status.PodIPs, func(i int) string { return at("status.podIPs", i) + ".ip" }
	if len(list) == 0 && status.PodIP != "" {
		list, path = []corev1.PodIP{{IP: status.PodIP}}, func(int) string { return "status.podIP" }
	}
	for i := range list {
		addr, err := usableAddr(list[i].IP)
		if err != nil {
			n.error(path(i), "%q: %v (left out)", list[i].IP, err)
			continue
		}
		if f := model.FamilyOf(addr); !p.Addresses[f].IsValid() {
			p.Addresses[f] = addr
		}
	}
}

// containerPorts are the ports of the containers that run as long as the Pod does: init containers only where they
// are restarted, as sidecars are.
func containerPorts(spec *corev1.PodSpec) []ContainerPort {
	var out []ContainerPort
	for i := range spec.Containers {
		out = appendPorts(out, spec.Containers[i].Ports)
	}
	for i := range spec.InitContainers {
		if r := spec.InitContainers[i].RestartPolicy; r != nil && *r == corev1.ContainerRestartPolicyAlways {
			out = appendPorts(out, spec.InitContainers[i].Ports)
		}
	}
	return out
}

func appendPorts(out []ContainerPort, in []corev1.ContainerPort) []ContainerPort {
	for i := range in {
		if proto, ok := protocol(in[i].Protocol); ok && validPort(in[i].ContainerPort) {
			out = append(out, ContainerPort{Name: in[i].Name, Protocol: proto, Port: uint16(in[i].ContainerPort)})
		}
	}
	return out
}
