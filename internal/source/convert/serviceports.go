package convert

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"sluice/internal/model"
)

const (
	maxPort   = 65535
	portRange = "must be 1-65535"
)

func validPort[T ~int32 | ~int](p T) bool { return p >= 1 && p <= maxPort }

// protocol reads a protocol, which is TCP where none is given. Like the API, it wants upper case.
func protocol(p corev1.Protocol) (model.Protocol, bool) {
	if p == "" {
		return model.TCP, true
	}
	proto, err := model.ParseProtocol(string(p))
	return proto, err == nil && proto.String() == string(p)
}

// portKey is what must differ between two ports of a Service.
type portKey struct {
	protocol model.Protocol
	port     uint16
}

func servicePorts(w *wrong, s *model.Service, in []corev1.ServicePort) []model.ServicePort {
	if len(in) == 0 && !s.Headless && s.Type != model.ExternalName {
		w.skip("spec.ports", "required")
	}
	names, ports, nodePorts := map[string]bool{}, map[portKey]bool{}, map[portKey]bool{}
	var out []model.ServicePort
	for i := range in {
		field := at("spec.ports", i)
		p := servicePort(w, s.Type, field, &in[i])
		checkPortName(w, field+".name", p.Name, len(in) == 1, names)
		if key := (portKey{p.Protocol, p.Port}); ports[key] {
			w.skip(field+".port", "%d: an earlier port has the same number and protocol", p.Port)
		} else {
			ports[key] = true
		}
		if key := (portKey{p.Protocol, p.NodePort}); p.NodePort != 0 && nodePorts[key] {
			w.skip(field+".nodePort", "%d: an earlier port has the same number and protocol", p.NodePort)
		} else {
			nodePorts[key] = true
		}
		out = append(out, p)
	}
	return out
}

func servicePort(w *wrong, t model.ServiceType, field string, in *corev1.ServicePort) model.ServicePort {
	proto, ok := protocol(in.Protocol)
	if !ok {
		w.skip(field+".protocol", "%q: must be TCP, UDP or SCTP", in.Protocol)
	}
	if !validPort(in.Port) {
		w.skip(field+".port", "%d: %s", in.Port, portRange)
	}
	if in.NodePort != 0 && !validPort(in.NodePort) {
		w.skip(field+".nodePort", "%d: %s", in.NodePort, portRange)
	}
	if why := badTargetPort(in.TargetPort); why != "" {
		w.skip(field+".targetPort", "%s: %s", in.TargetPort.String(), why)
	}
	p := model.ServicePort{Name: in.Name, Protocol: proto, Port: uint16(in.Port), NodePort: uint16(in.NodePort)}
	if p.NodePort != 0 && t != model.NodePort && t != model.LoadBalancer {
		w.warn(field+".nodePort", "%d: left out, since the Service is of type %s", p.NodePort, t)
		p.NodePort = 0
	}
	return p
}

// missingNodePorts tells of ports without the node port that an API server would have given them.
func missingNodePorts(n *notes, s *model.Service, spec *corev1.ServiceSpec) {
	allocates := spec.AllocateLoadBalancerNodePorts == nil || *spec.AllocateLoadBalancerNodePorts
	wanted := s.Type == model.NodePort || (s.Type == model.LoadBalancer && allocates)
	for i := range s.Ports {
		if wanted && s.Ports[i].NodePort == 0 {
			n.notice(at("spec.ports", i)+".nodePort", "none is given, so the port is served at no node port")
		}
	}
}

func checkPortName(w *wrong, field, name string, sole bool, names map[string]bool) {
	if name == "" {
		if !sole {
			w.skip(field, "required where a Service has several ports")
		}
		return
	}
	if why := first(validation.IsDNS1123Label(name)); why != "" {
		w.skip(field, "%q: %s", name, why)
	} else if names[name] {
		w.skip(field, "%q: an earlier port has the same name", name)
	}
	names[name] = true
}

// badTargetPort says what is wrong with a target port, or is "". The zero value stands for the Service's own port.
func badTargetPort(p intstr.IntOrString) string {
	switch {
	case p == intstr.IntOrString{}, p == intstr.FromString(""):
		return ""
	case p.Type == intstr.String:
		return first(validation.IsValidPortName(p.StrVal))
	case !validPort(p.IntVal):
		return portRange
	}
	return ""
}

// healthCheckNodePort is the port that a load balancer asks for the node's health: only a Service of type
// LoadBalancer with externalTrafficPolicy Local has one.
func healthCheckNodePort(n *notes, s *model.Service, port int32) uint16 {
	switch {
	case port == 0:
		return 0
	case !validPort(port):
		n.error("spec.healthCheckNodePort", "%d: %s (left out)", port, portRange)
		return 0
	case s.Type != model.LoadBalancer || s.ExternalPolicy != model.PolicyLocal:
		n.warn("spec.healthCheckNodePort", "%d: left out, since it needs type LoadBalancer and externalTrafficPolicy Local", port)
		return 0
	case slices.ContainsFunc(s.Ports, func(p model.ServicePort) bool { return p.Protocol == model.TCP && int32(p.NodePort) == port }):
		n.error("spec.healthCheckNodePort", "%d: is a node port of this Service already (left out)", port)
		return 0
	}
	return uint16(port)
}
