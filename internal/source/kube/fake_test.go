package kube

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"sluice/internal/model"
)

// fakeServer is an API server in memory, with all the faults that a real one and the way to it can have. Its objects
// are never changed once they are in it.
type fakeServer struct {
	*httptest.Server
	codecs serializer.CodecFactory

	mu        sync.Mutex // guards all that follows
	rng       *rand.Rand
	version   int
	objects   map[string]map[model.Name]object // by resource
	history   []edit
	compacted int // the last version that is forgotten
	changed   chan struct{}
	pages     map[string][]runtime.Object
	faults    faults
	seen      map[string]int // what happened, so that a test can tell that it did
}

type object interface {
	runtime.Object
	metav1.Object
}

// edit is one change of an object: from nil if it was not there, to nil if it is gone.
type edit struct {
	version  int
	resource string
	from, to object
}

// faults are probabilities of what goes wrong, for each request or each event.
type faults struct {
	refuse, break_, gone, noStreams, cut, end, bookmark, pause float64
	forbidden                                                  map[string]int // resource → HTTP status
	down                                                       bool
}

func newFakeServer(t *testing.T, seed uint64) *fakeServer {
	f := &fakeServer{
		codecs: serializer.NewCodecFactory(newScheme()), rng: rand.New(rand.NewPCG(seed, 0)), version: 1,
		objects: map[string]map[model.Name]object{}, changed: make(chan struct{}), pages: map[string][]runtime.Object{}, seen: map[string]int{},
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.with(func() { f.faults.down = true })
		f.Server.CloseClientConnections()
		f.Server.Close()
	})
	return f
}

// with changes something, and wakes all watches up.
func (f *fakeServer) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

// put creates or changes an object.
func (f *fakeServer) put(resource string, o object) {
	f.with(func() {
		f.version++
		o.SetResourceVersion(strconv.Itoa(f.version))
		name := model.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
		if f.objects[resource] == nil {
			f.objects[resource] = map[model.Name]object{}
		}
		f.history = append(f.history, edit{version: f.version, resource: resource, from: f.objects[resource][name], to: o})
		f.objects[resource][name] = o
	})
}

func (f *fakeServer) remove(resource string, name model.Name) {
	f.with(func() {
		was := f.objects[resource][name]
		if was == nil {
			return
		}
		f.version++
		f.history = append(f.history, edit{version: f.version, resource: resource, from: was})
		delete(f.objects[resource], name)
	})
}

// compact forgets all changes that were made.
func (f *fakeServer) compact() { f.with(func() { f.compacted, f.history = f.version, nil }) }

// restore takes the server back by some changes, as a backup of etcd does. The clients then know of a future.
func (f *fakeServer) restore(changes int) {
	f.with(func() { f.faults.down = true })
	f.Server.CloseClientConnections()
	f.with(func() {
		for range changes {
			e := f.history[len(f.history)-1]
			f.history, f.version = f.history[:len(f.history)-1], e.version-1
			if e.from != nil {
				f.objects[e.resource][model.Name{Namespace: e.from.GetNamespace(), Name: e.from.GetName()}] = e.from
			} else {
				delete(f.objects[e.resource], model.Name{Namespace: e.to.GetNamespace(), Name: e.to.GetName()})
			}
		}
		f.faults.down = false
	})
}

// chance is true with probability p, and counts what then happens.
func (f *fakeServer) chance(what string, p float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p == 0 || f.rng.Float64() >= p {
		return false
	}
	f.seen[what]++
	return true
}

func (f *fakeServer) count(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[what]++
}

func (f *fakeServer) saw(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[what]
}

// selector is what a request asks for.
type selector struct {
	resource string
	labels   labels.Selector
	fields   fields.Selector
}

func (s selector) matches(o object) bool {
	if o == nil {
		return false
	}
	set := fields.Set{"metadata.name": o.GetName()}
	if service, ok := o.(*corev1.Service); ok {
		set["spec.clusterIP"] = service.Spec.ClusterIP
	}
	return s.labels.Matches(labels.Set(o.GetLabels())) && s.fields.Matches(set)
}

// list is all objects asked for, in an order of no meaning, and the version they are of.
func (f *fakeServer) list(s selector) (out []runtime.Object, version int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.objects[s.resource] {
		if s.matches(o) {
			out = append(out, o)
		}
	}
	return out, f.version
}

func listOf(resource string) runtime.Object {
	switch resource {
	case "services":
		return &corev1.ServiceList{}
	case "endpointslices":
		return &discoveryv1.EndpointSliceList{}
	case "nodes":
		return &corev1.NodeList{}
	case "servicecidrs":
		return &networkingv1.ServiceCIDRList{}
	}
	panic(fmt.Sprintf("no such resource: %q", resource))
}

// state is what a client that missed nothing knows.
func (f *fakeServer) state(t *testing.T, node string) *model.Snapshot {
	t.Helper()
	l := newLedger(kinds(node), newLink(nil, ""))
	for _, s := range l.stores {
		list := listOf(s.kind.resource)
		objects, _ := f.list(parseSelector(s.kind.resource, s.kind.labels, s.kind.fields))
		if err := meta.SetList(list, objects); err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if err := s.Add(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, _ := l.take()
	snapshot := model.NewSnapshot()
	snapshot.Apply(c.Delta)
	return snapshot
}

func parseSelector(resource, label, field string) selector {
	l, err := labels.Parse(label)
	if err != nil {
		panic(err)
	}
	return selector{resource: resource, labels: l, fields: fields.ParseSelectorOrDie(field)}
}
