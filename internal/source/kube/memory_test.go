package kube

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/model"
)

// bigCluster are the objects of n Services with ten endpoints each, as a cluster with a hundred nodes has them.
func bigCluster(n int) (services, slices []object) {
	for i := range n {
		name, namespace := fmt.Sprintf("service-%d", i), fmt.Sprintf("namespace-%d", i%50)
		meta := metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"app": name},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 2000))}},
		}
		services = append(services, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			ClusterIP: fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250), Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		}})
		meta.Name, meta.Labels = name+"-abcde", map[string]string{"kubernetes.io/service-name": name}
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
		}
		for j := range 10 {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 128+j, i/250, 1+i%250)}, NodeName: new(fmt.Sprintf("node-%d", (i+j)%100)),
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("%s-7d9f8b6c5-%05d", name, j)},
			})
		}
		slices = append(slices, slice)
	}
	return services, slices
}

// decoded is an object as it comes from the server: with memory of its own.
func decoded(tb testing.TB, o, into object) object {
	tb.Helper()
	b, err := o.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err == nil {
		err = into.(interface{ Unmarshal([]byte) error }).Unmarshal(b)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return into
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// load brings objects into a new ledger.
func load(tb testing.TB, services, slices []object) (*ledger, Change) {
	tb.Helper()
	l := newLedger(kinds(""), newLink(nil, ""))
	for i, objects := range [][]object{services, slices} {
		s := l.stores[i]
		var items []any
		for _, o := range objects {
			it, err := s.Transformer()(decoded(tb, o, listItem(s.kind.resource)))
			if err != nil {
				tb.Fatal(err)
			}
			items = append(items, it)
		}
		if err := s.Replace(items, "1"); err != nil {
			tb.Fatal(err)
		}
	}
	c, _ := l.take()
	return l, c
}

// What is kept of 5,000 Services with ten endpoints is their model, and hardly anything beyond it.
func TestKeepsNothingButTheModel(t *testing.T) {
	const n = 5000
	services, slices := bigCluster(n)
	empty := heap()
	l, c := load(t, services, slices)
	if len(c.Delta.Services) != n || len(c.Delta.Slices) != n || len(c.Problems) > 0 {
		t.Fatalf("%d Services and %d slices, and %d objects with problems", len(c.Delta.Services), len(c.Delta.Slices), len(c.Problems))
	}
	snapshot := model.NewSnapshot()
	snapshot.Apply(c.Delta)
	c = Change{}
	both := heap() - empty
	runtime.KeepAlive(l) // and no longer
	alone := heap() - empty
	runtime.KeepAlive(snapshot)
	t.Logf("the model takes %d KiB, and what is kept beside it %d KiB", alone>>10, (both-alone)>>10)
	if beyond := both - alone; beyond > alone/4 {
		t.Errorf("%d bytes are kept beside a model of %d bytes", beyond, alone)
	}
	if most := uint64(n * 10 * 250); alone > most {
		t.Errorf("the model takes %d bytes, want %d at most: is something of the objects in it?", alone, most)
	}
	runtime.KeepAlive(services)
	runtime.KeepAlive(slices)
}

// BenchmarkChange is one changed endpoint among 5,000 Services.
func BenchmarkChange(b *testing.B) {
	services, slices := bigCluster(5000)
	l, _ := load(b, services, slices)
	store := l.stores[1]
	slice := slices[7].DeepCopyObject().(*discoveryv1.EndpointSlice)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		slice.Endpoints[0].Addresses[0] = fmt.Sprintf("10.9.0.%d", 1+i%2)
		if err := store.Update(slice); err != nil {
			b.Fatal(err)
		}
		if c, _ := l.take(); len(c.Delta.Slices) != 1 {
			b.Fatalf("%d slices changed, want 1", len(c.Delta.Slices))
		}
	}
}
