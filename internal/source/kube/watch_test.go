package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/model"
)

// The first Change has everything in it, and each later one what changed and nothing else.
func TestChangesAreSmall(t *testing.T) {
	f := newFakeServer(t, 1)
	for _, name := range []string{"a", "b", "c"} {
		f.put("services", service(name, "10.0.0.1"))
	}
	f.put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}})
	r, stop := start(t, dialFake(t, f.URL, protobuf, nil))
	eventually(t, "all is known", func() bool { return r.told() == 1 })
	same := service("a", "10.0.0.1")
	same.Annotations = map[string]string{"of": "no meaning"}
	f.put("services", same)
	f.put("services", service("b", "10.0.0.2"))
	want := f.state(t, "node-a")
	eventually(t, "the change is known", func() bool { return r.diff(want) == "" })
	stop()
	if n := len(r.changes[0].Delta.Services); n != 3 || len(r.changes[0].Delta.Nodes) != 1 {
		t.Errorf("the first change is %+v", r.changes[0].Delta)
	}
	b := model.Name{Namespace: "a", Name: "b"}
	if d := r.changes[len(r.changes)-1].Delta; len(r.changes) != 2 || len(d.Services) != 1 || d.Services[b] == nil || len(d.Nodes) > 0 {
		t.Errorf("%d changes, the last %+v", len(r.changes), d)
	}
}

// A label that makes an object another proxy's takes it away, and gives it back when it is gone.
func TestLabelIsSetAndTakenAway(t *testing.T) {
	f := newFakeServer(t, 1)
	f.put("services", service("a", "10.0.0.1"))
	r, _ := start(t, dialFake(t, f.URL, protobuf, nil))
	eventually(t, "all is known", func() bool { return r.told() == 1 })
	for _, labelled := range []bool{true, false} {
		s := service("a", "10.0.0.1")
		if labelled {
			s.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": ""}
		}
		f.put("services", s)
		eventually(t, "the change is known", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return (len(r.snapshot.Services) == 0) == labelled
		})
	}
}

func TestNodeComesAndGoes(t *testing.T) {
	f := newFakeServer(t, 1)
	r, _ := start(t, dialFake(t, f.URL, protobuf, nil))
	eventually(t, "the first change is told", func() bool { return r.told() == 1 })
	known := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.snapshot.Nodes["node-a"] != nil
	}
	f.put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}})
	eventually(t, "the Node is known", known)
	f.remove("nodes", model.Name{Name: "node-a"})
	eventually(t, "the Node is gone", func() bool { return !known() })
}

// A trigger time is told with every change that it led to, if it is of this process's life.
func TestTriggers(t *testing.T) {
	f := newFakeServer(t, 1)
	slice := func(at time.Time, address string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "a", Name: "web-1", Labels: map[string]string{"kubernetes.io/service-name": "web"},
				Annotations: map[string]string{corev1.EndpointsLastChangeTriggerTime: at.Format(time.RFC3339Nano)},
			},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
		}
	}
	before := time.Now().Add(-time.Hour)
	f.put("endpointslices", slice(before, "10.1.0.1"))
	r, stop := start(t, dialFake(t, f.URL, protobuf, nil))
	eventually(t, "all is known", func() bool { return r.told() == 1 })
	first, second, third := before.Add(2*time.Hour), before.Add(3*time.Hour), before.Add(4*time.Hour)
	for _, s := range []*discoveryv1.EndpointSlice{
		slice(before, "10.1.0.2"), // of another life
		slice(first, "10.1.0.3"),
		slice(first, "10.1.0.4"),
		slice(second, "10.1.0.4"), // no change
		slice(third, "10.1.0.5"),
	} {
		f.put("endpointslices", s)
	}
	f.remove("endpointslices", model.Name{Namespace: "a", Name: "web-1"})
	eventually(t, "the slice is gone", func() bool { return r.diff(model.NewSnapshot()) == "" })
	stop()
	web := model.Name{Namespace: "a", Name: "web"}
	var want []Trigger
	for _, at := range []time.Time{first, first, third} {
		want = append(want, Trigger{Service: web, At: at})
	}
	if diff := cmp.Diff(want, r.triggers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWatchesOnce(t *testing.T) {
	f := newFakeServer(t, 1)
	c := dialFake(t, f.URL, protobuf, nil)
	r, _ := start(t, c)
	eventually(t, "all is known", func() bool { return r.told() == 1 })
	if err := c.Watch(t.Context(), "node-a", r.take); err == nil {
		t.Error("a second Watch of the same Client has no error")
	}
}
