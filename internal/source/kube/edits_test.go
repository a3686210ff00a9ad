package kube

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/model"
)

// listItem is an empty object of a resource.
func listItem(resource string) object {
	switch resource {
	case "services":
		return &corev1.Service{}
	case "endpointslices":
		return &discoveryv1.EndpointSlice{}
	case "nodes":
		return &corev1.Node{}
	}
	return &networkingv1.ServiceCIDR{}
}

// randomEdit creates, changes or removes one object.
func (f *fakeServer) randomEdit(rng *rand.Rand) {
	name := model.Name{Namespace: []string{"a", "b"}[rng.IntN(2)], Name: fmt.Sprint("x", rng.IntN(8))}
	switch what := rng.IntN(20); {
	case what < 3:
		f.remove("services", name)
	case what < 6:
		f.remove("endpointslices", name)
	case what == 6:
		f.remove("nodes", model.Name{Name: "node-a"})
	case what == 7:
		f.remove("servicecidrs", model.Name{Name: name.Name})
	case what < 10:
		f.put("nodes", randomNode(rng))
	case what == 10:
		f.put("servicecidrs", &networkingv1.ServiceCIDR{
			ObjectMeta: metav1.ObjectMeta{Name: name.Name},
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{fmt.Sprintf("10.%d.0.0/16", rng.IntN(9)), "bad"}[:1+rng.IntN(2)]},
		})
	case what < 15:
		f.put("services", randomService(rng, name))
	default:
		f.put("endpointslices", randomSlice(rng, name))
	}
}

func randomNode(rng *rand.Rand) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   []string{"node-a", "node-b"}[rng.IntN(2)],
			Labels: map[string]string{"topology.kubernetes.io/zone": fmt.Sprint("z", rng.IntN(3))},
		},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprint("192.0.2.", rng.IntN(3))}}},
	}
}

func randomService(rng *rand.Rand, name model.Name) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{}},
		Spec: corev1.ServiceSpec{
			ClusterIP: fmt.Sprint("10.0.0.", 1+rng.IntN(3)), Ports: []corev1.ServicePort{{Port: int32(rng.IntN(3))}}, // 0 is wrong
		},
	}
	if rng.IntN(4) == 0 {
		s.Labels["service.kubernetes.io/service-proxy-name"] = ""
	}
	if rng.IntN(6) == 0 {
		s.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return s
}

func randomSlice(rng *rand.Rand, name model.Name) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{"kubernetes.io/service-name": "x1"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "someone"}},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}},
	}
	for range rng.IntN(3) {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprint("10.1.0.", rng.IntN(260))}}) // some are wrong
	}
	if rng.IntN(4) == 0 {
		s.Labels["service.kubernetes.io/headless"] = ""
	}
	return s
}
