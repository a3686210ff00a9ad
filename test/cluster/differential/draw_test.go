package differential_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"sluice/internal/model"
)

// namespace is where all objects are.
const namespace = "default"

// The labels that take a Service, or an EndpointSlice, out of a proxy's hands.
const (
	labelOtherProxy = "service.kubernetes.io/service-proxy-name"
	labelHeadless   = "service.kubernetes.io/headless"
)

// drawer draws objects. The same seed draws the same ones.
type drawer struct {
	*rand.Rand
	next int // number of the next Service port, so that ports are nobody else's unless that is what is tried
}

func newDrawer(seed uint64) *drawer { return &drawer{Rand: rand.New(rand.NewPCG(seed, 0)), next: 1000} }

// chance is true in so many of a hundred cases.
func (d *drawer) chance(percent int) bool { return d.IntN(100) < percent }

// pick chooses one of a list.
func pick[T any](d *drawer, list ...T) T { return list[d.IntN(len(list))] }

// service draws a Service, as a user would write it. The load balancer's status comes with it.
func (d *drawer) service(name string) *v1.Service {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	s.Spec.IPFamilies = pick(d, []v1.IPFamily{v1.IPv4Protocol}, []v1.IPFamily{v1.IPv6Protocol},
		[]v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}, []v1.IPFamily{v1.IPv6Protocol, v1.IPv4Protocol})
	policy := v1.IPFamilyPolicySingleStack
	if len(s.Spec.IPFamilies) == 2 {
		policy = v1.IPFamilyPolicyRequireDualStack
	}
	s.Spec.IPFamilyPolicy = &policy
	d.redraw(s)
	if s.Spec.Type == v1.ServiceTypeClusterIP && d.chance(12) {
		s.Spec.ClusterIP = v1.ClusterIPNone
	}
	return s
}

// redraw draws everything of a Service that can change while it lives.
func (d *drawer) redraw(s *v1.Service) {
	shared := d.chance(6)
	s.Spec.Ports = d.ports(shared)
	d.kind(s, shared)
	d.policies(s)
	delete(s.Labels, labelOtherProxy)
	if d.chance(4) {
		s.Labels = map[string]string{labelOtherProxy: pick(d, "", "other")}
	}
	s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = v1.ServiceAffinityNone, nil
	if d.chance(12) {
		s.Spec.SessionAffinity = v1.ServiceAffinityClientIP
	}
}

// ports draws one to three. Shared ones have numbers that other Services may have, too.
func (d *drawer) ports(shared bool) (ports []v1.ServicePort) {
	for i := range 1 + d.IntN(3) {
		p := v1.ServicePort{
			Name: fmt.Sprintf("p%d", i), Port: int32(d.next), Protocol: pick(d, v1.ProtocolTCP, v1.ProtocolTCP, v1.ProtocolUDP),
			TargetPort: intstr.FromInt32(int32(pick(d, targetPorts...))),
		}
		d.next++
		switch {
		case d.chance(8):
			p.Protocol = v1.ProtocolSCTP
		case d.chance(20):
			p.TargetPort = intstr.FromString("web")
		}
		if shared {
			p.Port = int32(80 + i)
		}
		ports = append(ports, p)
	}
	if len(ports) > 1 && d.chance(25) { // the same number over the other protocol
		ports[1].Port, ports[0].Protocol, ports[1].Protocol = ports[0].Port, v1.ProtocolTCP, v1.ProtocolUDP
	}
	return ports
}

// kind draws the Service's type and the addresses that come with it.
func (d *drawer) kind(s *v1.Service, shared bool) {
	s.Spec.Type = pick(d, v1.ServiceTypeClusterIP, v1.ServiceTypeNodePort, v1.ServiceTypeLoadBalancer, v1.ServiceTypeLoadBalancer)
	s.Spec.ExternalIPs, s.Spec.LoadBalancerSourceRanges, s.Spec.AllocateLoadBalancerNodePorts = nil, nil, nil
	s.Status.LoadBalancer.Ingress = nil
	if shared || d.chance(25) {
		for _, f := range families(s) {
			s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, d.external(f, shared).String())
		}
	}
	if s.Spec.Type != v1.ServiceTypeLoadBalancer {
		return
	}
	if d.chance(20) {
		s.Spec.AllocateLoadBalancerNodePorts = new(bool)
	}
	if d.chance(40) {
		s.Spec.LoadBalancerSourceRanges = d.ranges()
	}
	for _, f := range families(s) {
		mode := pick(d, v1.LoadBalancerIPModeVIP, v1.LoadBalancerIPModeVIP, v1.LoadBalancerIPModeVIP, v1.LoadBalancerIPModeProxy)
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, v1.LoadBalancerIngress{IP: d.external(f, shared).String(), IPMode: &mode})
	}
}

// external draws an address that the network hands to the node. There are few shared ones.
func (d *drawer) external(f model.Family, shared bool) netip.Addr {
	number := 10 + d.IntN(240)
	if shared {
		number = 1 + d.IntN(3)
	}
	if f == model.IPv4 {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(number)})
	}
	return netip.MustParseAddr(fmt.Sprintf("2001:db8:1b::%x", number))
}

// ranges draws who may connect to a load balancer.
func (d *drawer) ranges() (list []string) {
	for range 1 + d.IntN(3) {
		list = append(list, pick(d,
			allowed4.String(), allowed6.String(), "10.244.0.0/16", "fd00:244::/48", "192.168.10.0/24", "fd00:10::/64",
			"198.51.100.0/24", "2001:db8:99::/48", "0.0.0.0/0", "192.0.2.0/24"))
	}
	return list
}

// policies draws both traffic policies, as far as the Service may have them.
func (d *drawer) policies(s *v1.Service) {
	internal := pick(d, v1.ServiceInternalTrafficPolicyCluster, v1.ServiceInternalTrafficPolicyCluster, v1.ServiceInternalTrafficPolicyLocal)
	s.Spec.InternalTrafficPolicy = &internal
	s.Spec.ExternalTrafficPolicy = ""
	if s.Spec.Type != v1.ServiceTypeClusterIP || len(s.Spec.ExternalIPs) > 0 {
		s.Spec.ExternalTrafficPolicy = pick(d, v1.ServiceExternalTrafficPolicyCluster, v1.ServiceExternalTrafficPolicyLocal)
	}
}

// families are those of a Service.
func families(s *v1.Service) (all []model.Family) {
	for _, f := range s.Spec.IPFamilies {
		all = append(all, map[v1.IPFamily]model.Family{v1.IPv4Protocol: model.IPv4, v1.IPv6Protocol: model.IPv6}[f])
	}
	return all
}
