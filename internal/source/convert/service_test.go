package convert_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"sluice/internal/model"
	"sluice/internal/source/convert"
)

// values compares addresses as values, and no list as an empty list.
var values = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

func addrs(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// web is a Service with nothing but what it must have.
func web(change func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	change(s)
	return s
}

func TestServiceValues(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*corev1.Service)
		want   func(*model.Service)
	}{
		{"defaults", func(s *corev1.Service) {}, func(s *model.Service) {}},
		{"names and time", func(s *corev1.Service) {
			s.Namespace = "shop"
			s.CreationTimestamp = metav1.Unix(7, 0)
		}, func(s *model.Service) {
			s.Name.Namespace = "shop"
			s.Created = time.Unix(7, 0)
		}},
		{"cluster IP without a list", func(s *corev1.Service) {
			s.Spec.ClusterIP = "172.030.0.041"
		}, func(s *model.Service) { s.ClusterIPs = addrs("172.30.0.41") }},
		{"two cluster IPs", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "fd00::1", []string{"fd00::1", "::ffff:10.0.0.1"}
		}, func(s *model.Service) { s.ClusterIPs = addrs("fd00::1", "10.0.0.1") }},
		{"headless", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.Ports = "None", nil
		}, func(s *model.Service) { s.Headless, s.Ports = true, nil }},
		{"labels with any value", func(s *corev1.Service) {
			s.Labels = map[string]string{"service.kubernetes.io/headless": "", "service.kubernetes.io/service-proxy-name": ""}
		}, func(s *model.Service) { s.HeadlessLabel, s.OtherProxy = true, true }},
		{"balance", func(s *corev1.Service) {
			s.Annotations = map[string]string{"sluice.dev/balance": "round-robin"}
		}, func(s *model.Service) { s.Balancing = model.BalanceRoundRobin }},
		{"weights", func(s *corev1.Service) {
			s.Annotations = map[string]string{"sluice.dev/weights": "web-v1-*=9, web-v2-a = 1,10.244.2.09=3,\n fd00::9=100,node/node-b.example=2, *=4,"}
		}, func(s *model.Service) {
			s.Weights = []model.Weight{
				{Pod: "web-v1-*", Value: 9},
				{Pod: "web-v2-a", Value: 1},
				{Address: netip.MustParseAddr("10.244.2.9"), Value: 3},
				{Address: netip.MustParseAddr("fd00::9"), Value: 100},
				{Node: "node-b.example", Value: 2},
				{Pod: "*", Value: 4},
			}
		}},
		{"external name", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName, s.Spec.Ports = "ExternalName", "a.example", nil
		}, func(s *model.Service) { s.Type, s.Ports = model.ExternalName, nil }},
		{"affinity by default", func(s *corev1.Service) {
			s.Spec.SessionAffinity = "ClientIP"
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{}}
		}, func(s *model.Service) { s.Affinity = 3 * time.Hour }},
		{"longest affinity", func(s *corev1.Service) {
			s.Spec.SessionAffinity = "ClientIP"
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(86400))}}
		}, func(s *model.Service) { s.Affinity = 24 * time.Hour }},
		{"policies", func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy, s.Spec.ExternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal), "Local"
		}, func(s *model.Service) { s.InternalPolicy, s.ExternalPolicy = model.PolicyLocal, model.PolicyLocal }},
		{"one number for two protocols", func(s *corev1.Service) {
			s.Spec.Type = "NodePort"
			s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 53, NodePort: 30053}, {Name: "b", Port: 53, NodePort: 30053, Protocol: "UDP"}}
		}, func(s *model.Service) {
			s.Type = model.NodePort
			s.Ports = []model.ServicePort{
				{Name: "a", Protocol: model.TCP, Port: 53, NodePort: 30053},
				{Name: "b", Protocol: model.UDP, Port: 53, NodePort: 30053},
			}
		}},
		{"load balancer", func(s *corev1.Service) {
			loadBalancer(s)
			s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = "Local", 32000
			s.Spec.LoadBalancerSourceRanges = []string{" 10.1.2.3/8 ", "0.0.0.0/0", "fd00::1/64"}
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
				{IP: "192.0.2.1"},
				{Hostname: "lb.example"},
				{IP: "192.0.2.2", IPMode: new(corev1.LoadBalancerIPModeVIP)},
				{IP: "192.0.2.3", IPMode: new(corev1.LoadBalancerIPModeProxy)},
				{IP: "192.0.2.1"},
			}
		}, func(s *model.Service) {
			s.Type, s.ExternalPolicy, s.HealthCheckNodePort = model.LoadBalancer, model.PolicyLocal, 32000
			s.SourceRanges = prefixes("10.0.0.0/8", "0.0.0.0/0", "fd00::/64")
			s.LoadBalancerIPs, s.ProxyLoadBalancerIPs = addrs("192.0.2.1", "192.0.2.2"), addrs("192.0.2.3")
		}},
		{"status of another type", func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
			s.Spec.ExternalIPs = []string{"", "198.51.100.1", "198.51.100.1"}
		}, func(s *model.Service) { s.ExternalIPs = addrs("198.51.100.1") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := &model.Service{
				Name:  model.Name{Namespace: "default", Name: "web"},
				Type:  model.ClusterIP,
				Ports: []model.ServicePort{{Protocol: model.TCP, Port: 80}},
			}
			test.want(want)
			got, problems := convert.Service(web(test.change))
			if diff := cmp.Diff(want, got, values); diff != "" {
				t.Errorf("service (-want +got):\n%s", diff)
			}
			if len(problems) > 0 {
				t.Errorf("problems: %v", problems)
			}
		})
	}
}

func TestServiceProblems(t *testing.T) {
	type ports = []corev1.ServicePort
	for _, test := range []struct {
		name   string
		change func(*corev1.Service)
		want   convert.Problem // without the message
	}{
		{"no name", func(s *corev1.Service) { s.Name = "" }, skipped("metadata.name")},
		{"name that would break a rule", func(s *corev1.Service) { s.Name = "a\" -j ACCEPT" }, skipped("metadata.name")},
		{"namespace", func(s *corev1.Service) { s.Namespace = "A" }, skipped("metadata.namespace")},
		{"type", func(s *corev1.Service) { s.Spec.Type = "Nodeport" }, skipped("spec.type")},
		{"cluster IP", func(s *corev1.Service) { s.Spec.ClusterIP = "10.0.0.256" }, skipped("spec.clusterIP")},
		{"cluster IPs differ", func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.0.0.1", []string{"10.0.0.2"}
		}, skipped("spec.clusterIP")},
		{"cluster IPs of one family", func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.0.0.1", "10.0.0.2"} }, skipped("spec.clusterIPs[1]")},
		{"None among cluster IPs", func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.0.0.1", "None"} }, skipped("spec.clusterIPs[1]")},
		{"every address", func(s *corev1.Service) { s.Spec.ClusterIP = "0.0.0.0" }, skipped("spec.clusterIP")},
		{"affinity", func(s *corev1.Service) { s.Spec.SessionAffinity = "Cookie" }, skipped("spec.sessionAffinity")},
		{"affinity of no time", func(s *corev1.Service) { affinity(s, 0) }, skipped("spec.sessionAffinityConfig.clientIP.timeoutSeconds")},
		{"affinity too long", func(s *corev1.Service) { affinity(s, 86401) }, skipped("spec.sessionAffinityConfig.clientIP.timeoutSeconds")},
		{"internal policy", func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicy("local"))
		}, skipped("spec.internalTrafficPolicy")},
		{"external policy", func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = "Node" }, skipped("spec.externalTrafficPolicy")},
		{"source range", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8", "10.0.0.1"} }, skipped("spec.loadBalancerSourceRanges[1]")},
		{"no ports", func(s *corev1.Service) { s.Spec.Ports = nil }, skipped("spec.ports")},
		{"port 0", func(s *corev1.Service) { s.Spec.Ports[0].Port = 0 }, skipped("spec.ports[0].port")},
		{"port 65536", func(s *corev1.Service) { s.Spec.Ports[0].Port = 65536 }, skipped("spec.ports[0].port")},
		{"protocol", func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "tcp" }, skipped("spec.ports[0].protocol")},
		{"node port", func(s *corev1.Service) { s.Spec.Type, s.Spec.Ports[0].NodePort = "NodePort", -1 }, skipped("spec.ports[0].nodePort")},
		{"target port", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(70000) }, skipped("spec.ports[0].targetPort")},
		{"target port name", func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromString("80") }, skipped("spec.ports[0].targetPort")},
		{"port name", func(s *corev1.Service) { s.Spec.Ports[0].Name = "a b" }, skipped("spec.ports[0].name")},
		{"same name", func(s *corev1.Service) { s.Spec.Ports = ports{{Name: "a", Port: 1}, {Name: "a", Port: 2}} }, skipped("spec.ports[1].name")},
		{"same port", func(s *corev1.Service) { s.Spec.Ports = ports{{Name: "a", Port: 1}, {Name: "b", Port: 1}} }, skipped("spec.ports[1].port")},
		{"second without a name", func(s *corev1.Service) { s.Spec.Ports = ports{{Name: "a", Port: 1}, {Port: 2}} }, skipped("spec.ports[1].name")},
		{"same node port", func(s *corev1.Service) {
			s.Spec.Type = "NodePort"
			s.Spec.Ports = ports{{Name: "a", Port: 1, NodePort: 30000}, {Name: "b", Port: 2, NodePort: 30000}}
		}, skipped("spec.ports[1].nodePort")},
		{"node port of the wrong type", func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30000 }, warning("spec.ports[0].nodePort")},
		{"external IP", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.1", "x"} }, leftOut("spec.externalIPs[1]")},
		{"external IP of the host itself", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"127.0.0.1"} }, leftOut("spec.externalIPs[0]")},
		{"load balancer IP", func(s *corev1.Service) {
			loadBalancer(s)
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "x"}}
		}, leftOut("status.loadBalancer.ingress[0].ip")},
		{"IP mode", func(s *corev1.Service) {
			loadBalancer(s)
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1", IPMode: new(corev1.LoadBalancerIPMode("vip"))}}
		}, leftOut("status.loadBalancer.ingress[0].ipMode")},
		{"health check port", func(s *corev1.Service) { s.Spec.HealthCheckNodePort = -3 }, leftOut("spec.healthCheckNodePort")},
		{"health check port with policy Cluster", func(s *corev1.Service) {
			loadBalancer(s)
			s.Spec.HealthCheckNodePort = 32000
		}, warning("spec.healthCheckNodePort")},
		{"health check port that is a node port too", func(s *corev1.Service) {
			loadBalancer(s)
			s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = "Local", 32000
			s.Spec.Ports = ports{{Name: "a", Port: 1}, {Name: "b", Port: 2, NodePort: 32000}}
		}, leftOut("spec.healthCheckNodePort")},
		{"external IP of everybody", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"255.255.255.255"} }, leftOut("spec.externalIPs[0]")},
		{"balance", func(s *corev1.Service) {
			s.Annotations = map[string]string{"sluice.dev/balance": "best"}
		}, warning("metadata.annotations[sluice.dev/balance]")},
		{"annotation that there is not", func(s *corev1.Service) {
			s.Annotations = map[string]string{"sluice.dev/weight": "a=1", "sluice.dev/balance": "random", "sluice.device/x": "y"}
		}, notice("metadata.annotations[sluice.dev/weight]")},
		{"node port", func(s *corev1.Service) { s.Spec.Type = "NodePort" }, notice("spec.ports[0].nodePort")},
		{"node port of a load balancer", func(s *corev1.Service) { s.Spec.Type = "LoadBalancer" }, notice("spec.ports[0].nodePort")},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, problems := convert.Service(web(test.change))
			if diff := cmp.Diff([]convert.Problem{test.want}, problems, cmpopts.IgnoreFields(convert.Problem{}, "Message")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if (got == nil) != test.want.Skipped {
				t.Errorf("service is %v, skipped %v", got, test.want.Skipped)
			}
			if got != nil && (len(got.LoadBalancerIPs) > 0 || got.HealthCheckNodePort > 0 || got.Ports[0].NodePort > 0 || len(got.ExternalIPs) > 1) {
				t.Errorf("the wrong part is still there: %+v", got)
			}
		})
	}
}

func affinity(s *corev1.Service, seconds int32) {
	s.Spec.SessionAffinity = "ClientIP"
	s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
}

func skipped(field string) convert.Problem { return convert.Problem{Field: field, Skipped: true} }

func leftOut(field string) convert.Problem { return convert.Problem{Field: field} }

// loadBalancer makes it a Service of that type, without node ports.
func loadBalancer(s *corev1.Service) {
	s.Spec.Type, s.Spec.AllocateLoadBalancerNodePorts = "LoadBalancer", new(false)
}

func notice(field string) convert.Problem {
	return convert.Problem{Field: field, Severity: convert.Notice}
}

func warning(field string) convert.Problem {
	return convert.Problem{Field: field, Severity: convert.Warning}
}
