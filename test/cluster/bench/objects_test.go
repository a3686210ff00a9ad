package bench_test

import (
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
)

// The ports of every Service and of every endpoint.
const (
	port       = 80
	targetPort = 8080
)

// The Services after the crowd, whose endpoints all answer. The crowd's own do not, but for those of the first ones.
const (
	targets = 4  // Services of one endpoint, which is replaced
	slots   = 12 // Services that come and go; their EndpointSlices stay. No subject has more samples
	stable  = 8  // Services of the crowd that stay as they are
)

// target is the i-th Service whose endpoint is replaced.
func target(i int) int { return *services + i }

// slot is the i-th Service that comes and goes.
func slot(i int) int { return *services + targets + i }

func name(i int) string { return fmt.Sprintf("service-%d", i) }

// clusterIP is in the half of the range that the API server does not choose from by itself.
func clusterIP(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 96, byte(128 + i>>8), byte(i)}) }

// answering is the address of an endpoint that answers; there are 250.
func answering(i int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, byte(1 + i%250)}) }

// silent is the address of the e-th endpoint of a Service of the crowd. The version only matters for the first one.
func silent(i, e, version int) netip.Addr {
	second := 128 + e
	if e == 0 {
		second = 160 + version
	}
	return netip.AddrFrom4([4]byte{10, byte(second), byte(i >> 8), byte(i)})
}

func serviceOf(i int) *v1.Service {
	family := v1.IPFamilyPolicySingleStack
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name(i), Labels: map[string]string{"app": name(i)}},
		Spec: v1.ServiceSpec{
			ClusterIP: clusterIP(i).String(), IPFamilyPolicy: &family, IPFamilies: []v1.IPFamily{v1.IPv4Protocol},
			Ports: []v1.ServicePort{{Name: "http", Protocol: v1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(targetPort)}},
		},
	}
}

func sliceOf(i int, addrs ...netip.Addr) *discoveryv1.EndpointSlice {
	portName, protocol, number, yes, no := "http", v1.ProtocolTCP, int32(targetPort), true, false
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name(i), Labels: map[string]string{discoveryv1.LabelServiceName: name(i), discoveryv1.LabelManagedBy: "bench"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &portName, Protocol: &protocol, Port: &number}},
	}
	for e, a := range addrs {
		node := fmt.Sprintf("node-%d", e)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{a.String()},
			Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
			NodeName:   &node,
			TargetRef:  &v1.ObjectReference{Kind: "Pod", Namespace: "default", Name: fmt.Sprintf("%s-%d", name(i), e)},
		})
	}
	return s
}

// crowd are the endpoints of a Service of the crowd.
func crowd(i, n, version int) (all []netip.Addr) {
	for e := range n {
		a := silent(i, e, version)
		if i < stable {
			a = answering(e)
		}
		all = append(all, a)
	}
	return all
}

// fill makes all objects.
func (a *arena) fill() {
	a.Helper()
	var g errgroup.Group
	g.SetLimit(8)
	for i := range slot(slots) {
		g.Go(func() error {
			addrs := crowd(i, *endpoints, 0)
			if i >= *services {
				addrs = []netip.Addr{answering(0)}
			}
			_, err := a.slices().Create(a.Context(), sliceOf(i, addrs...), metav1.CreateOptions{})
			if err == nil && i < slot(0) {
				err = a.create(a.Context(), i)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		a.Fatal(err)
	}
}

func (a *arena) services() coreclient.ServiceInterface { return a.Client.CoreV1().Services("default") }

func (a *arena) slices() discoveryclient.EndpointSliceInterface {
	return a.Client.DiscoveryV1().EndpointSlices("default")
}

func (a *arena) create(ctx context.Context, i int) error {
	_, err := a.services().Create(ctx, serviceOf(i), metav1.CreateOptions{})
	return err
}

func (a *arena) delete(ctx context.Context, i int) error {
	return a.services().Delete(ctx, name(i), metav1.DeleteOptions{})
}

// point gives a Service these endpoints.
func (a *arena) point(ctx context.Context, i int, addrs ...netip.Addr) error {
	_, err := a.slices().Update(ctx, sliceOf(i, addrs...), metav1.UpdateOptions{})
	return err
}
