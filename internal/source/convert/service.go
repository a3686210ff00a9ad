package convert

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"sluice/internal/model"
)

const (
	// defaultAffinity is how long session affinity lasts where a Service does not say.
	defaultAffinity = time.Duration(corev1.DefaultClientIPServiceAffinitySeconds) * time.Second
	// maxAffinity is the longest, in seconds.
	maxAffinity = 86400
)

// Service is what a Service means, or nil if it is wrong in a way that leaves nothing to serve.
func Service(in *corev1.Service) (*model.Service, []Problem) {
	w := &wrong{notes: &notes{}}
	s := &model.Service{
		Name:          w.name(in.ObjectMeta, validation.IsDNS1123Label),
		Type:          serviceType(w, in.Spec.Type),
		Created:       in.CreationTimestamp.Time,
		OtherProxy:    has(in.Labels, labelOtherProxy),
		HeadlessLabel: has(in.Labels, labelHeadless),
	}
	s.ClusterIPs, s.Headless = clusterIPs(w, &in.Spec)
	s.InternalPolicy = policy(w, "spec.internalTrafficPolicy", in.Spec.InternalTrafficPolicy)
	s.ExternalPolicy = policy(w, "spec.externalTrafficPolicy", &in.Spec.ExternalTrafficPolicy)
	s.Affinity = affinity(w, &in.Spec)
	s.SourceRanges = sourceRanges(w, in.Spec.LoadBalancerSourceRanges)
	s.Ports = servicePorts(w, s, in.Spec.Ports)
	if w.found {
		return nil, w.list
	}
	s.ExternalIPs = externalIPs(w.notes, in.Spec.ExternalIPs)
	s.LoadBalancerIPs, s.ProxyLoadBalancerIPs = loadBalancerIPs(w.notes, s.Type, in.Status.LoadBalancer.Ingress)
	s.HealthCheckNodePort = healthCheckNodePort(w.notes, s, in.Spec.HealthCheckNodePort)
	missingNodePorts(w.notes, s, &in.Spec)
	unknownAnnotations(w.notes, in.Annotations)
	s.Balancing = balancing(w.notes, in.Annotations)
	s.Weights = weights(w.notes, in.Annotations)
	s.Scheduler = scheduler(w.notes, in.Annotations)
	s.ProxyProtocol = proxyProtocol(w.notes, in.Annotations)
	return s, w.list
}

func serviceType(w *wrong, t corev1.ServiceType) model.ServiceType {
	switch t {
	case "":
		return model.ClusterIP
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName:
		return model.ServiceType(t)
	}
	w.skip("spec.type", "%q: must be ClusterIP, NodePort, LoadBalancer or ExternalName", t)
	return ""
}

// clusterIPs are the addresses of spec.clusterIPs, or of spec.clusterIP in an object written without the list.
func clusterIPs(w *wrong, spec *corev1.ServiceSpec) (addrs []netip.Addr, headless bool) {
	list, path := spec.ClusterIPs, func(i int) string { return at("spec.clusterIPs", i) }
	if len(list) == 0 && spec.ClusterIP != "" {
		list, path = []string{spec.ClusterIP}, func(int) string { return "spec.clusterIP" }
	}
	if len(list) == 0 {
		return nil, false
	}
	if spec.ClusterIP != "" && spec.ClusterIP != list[0] {
		w.skip("spec.clusterIP", "%q: must be the same as clusterIPs[0], %q", spec.ClusterIP, list[0])
	}
	if list[0] == corev1.ClusterIPNone && len(list) == 1 {
		return nil, true
	}
	var have [len(model.Families)]bool
	for i, text := range list {
		addr, err := usableAddr(text)
		if err != nil {
			w.skip(path(i), "%q: %v", text, err)
			continue
		}
		if f := model.FamilyOf(addr); have[f] {
			w.skip(path(i), "%s: a Service has one %s cluster IP at most", text, f)
		} else {
			have[f], addrs = true, append(addrs, addr)
		}
	}
	return addrs, false
}

func policy[T ~string](w *wrong, field string, p *T) model.TrafficPolicy {
	switch {
	case p == nil || *p == "" || *p == "Cluster":
		return model.PolicyCluster
	case *p == "Local":
		return model.PolicyLocal
	}
	w.skip(field, "%q: must be Cluster or Local", *p)
	return model.PolicyCluster
}

// affinity is how long a client stays with its endpoint; 0 is not at all.
func affinity(w *wrong, spec *corev1.ServiceSpec) time.Duration {
	switch spec.SessionAffinity {
	case "", corev1.ServiceAffinityNone:
		return 0
	case corev1.ServiceAffinityClientIP:
	default:
		w.skip("spec.sessionAffinity", "%q: must be None or ClientIP", spec.SessionAffinity)
		return 0
	}
	config := spec.SessionAffinityConfig
	if config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
		return defaultAffinity
	}
	seconds := *config.ClientIP.TimeoutSeconds
	if seconds < 1 || seconds > maxAffinity {
		w.skip("spec.sessionAffinityConfig.clientIP.timeoutSeconds", "%d: must be 1-%d", seconds, maxAffinity)
	}
	return time.Duration(seconds) * time.Second
}
