package differential_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/model"
)

// frontend is an address that Services may claim.
type frontend struct {
	addr     netip.Addr // not valid: the node's
	port     uint16
	protocol model.Protocol
	family   model.Family
}

func (q question) frontend() frontend { return frontend{q.addr, q.port, q.protocol, q.family} }

// claims counts the Services that want each address.
func (g *game) claims() map[frontend]int {
	all := map[frontend]int{}
	for _, o := range g.subjects {
		for f := range o.claims() {
			all[f]++
		}
	}
	return all
}

// claims are the addresses that a Service wants, and how often.
func (o *subject) claims() map[frontend]int {
	own := map[frontend]int{}
	if _, other := o.service.Labels[labelOtherProxy]; other || o.gone || o.service.Spec.ClusterIP == v1.ClusterIPNone {
		return nil
	}
	for _, q := range o.questions() {
		if q.client == process && q.target != loopback && !q.proxied() { // who asks about every address
			own[q.frontend()]++
		}
	}
	return own
}

// proxied is whether the address is a load balancer's that does not hand packets over as they are.
func (q question) proxied() bool {
	return q.target == loadBalancer && slices.ContainsFunc(q.subject.service.Status.LoadBalancer.Ingress, func(i v1.LoadBalancerIngress) bool {
		return i.IP == q.addr.String() && i.IPMode != nil && *i.IPMode == v1.LoadBalancerIPModeProxy
	})
}

// settler makes the Service that ends a round. One pod elsewhere is behind it.
func (g *game) settler(s *v1.Service) (*subject, error) {
	ctx := context.Background()
	o := &subject{slices: map[string]*discovery.EndpointSlice{}}
	var err error
	if o.service, err = g.Client.CoreV1().Services(namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	name, port, tcp := "p", int32(8080), v1.ProtocolTCP
	for _, f := range model.Families {
		slice := &discovery.EndpointSlice{AddressType: discovery.AddressType(f.String())}
		slice.Name, slice.Namespace = fmt.Sprintf("%s-%d", s.Name, f), namespace
		slice.Labels = map[string]string{discovery.LabelServiceName: s.Name}
		slice.Ports = []discovery.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}}
		slice.Endpoints = g.endpoints(f, member{site: elsewhere, number: 100})
		if o.slices[slice.Name], err = g.Client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	return o, nil
}
