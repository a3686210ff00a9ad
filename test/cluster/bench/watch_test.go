package bench_test

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"sluice/test/cluster"
)

// hearing is a bare watch of Services and EndpointSlices: nobody who reads the API can know of a change before it does.
type hearing struct {
	mu   sync.Mutex // guards what follows
	last map[string]heard
	// pointed is when it was last heard that a Service of one endpoint has that one.
	pointed map[pointing]time.Time
}

// pointing is a Service's EndpointSlice with its only endpoint.
type pointing struct {
	slice    string
	endpoint netip.Addr
}

// heard is the last that was heard of an object.
type heard struct {
	event watch.EventType
	at    time.Time
}

// listen watches until the benchmark ends, from now on.
func (a *arena) listen() *hearing {
	a.Helper()
	h := &hearing{last: map[string]heard{}, pointed: map[pointing]time.Time{}}
	newest := metav1.ListOptions{Limit: 1}
	service, err1 := a.services().List(a.Context(), newest)
	slice, err2 := a.slices().List(a.Context(), newest)
	if err := errors.Join(err1, err2); err != nil {
		a.Fatal(err)
	}
	services, err1 := a.services().Watch(a.Context(), metav1.ListOptions{ResourceVersion: service.ResourceVersion})
	slices, err2 := a.slices().Watch(a.Context(), metav1.ListOptions{ResourceVersion: slice.ResourceVersion})
	if err := errors.Join(err1, err2); err != nil {
		a.Fatal(err)
	}
	var watching sync.WaitGroup
	watching.Go(func() { h.follow("Service", services) })
	watching.Go(func() { h.follow("EndpointSlice", slices) })
	a.Cleanup(func() { services.Stop(); slices.Stop(); watching.Wait() })
	return h
}

func (h *hearing) follow(kind string, w watch.Interface) {
	for e := range w.ResultChan() {
		at := time.Now()
		o, ok := e.Object.(metav1.Object)
		if !ok {
			continue
		}
		h.mu.Lock()
		h.last[kind+" "+o.GetName()] = heard{e.Type, at}
		if s, ok := o.(*discoveryv1.EndpointSlice); ok && len(s.Endpoints) == 1 {
			h.pointed[pointing{s.Name, netip.MustParseAddr(s.Endpoints[0].Addresses[0])}] = at
		}
		h.mu.Unlock()
	}
}

// pointing waits until it is heard, later than start, that a Service has that one endpoint, and returns when it was.
func (h *hearing) pointing(a *arena, service int, endpoint netip.Addr, start time.Time) (at time.Time) {
	a.Helper()
	p := pointing{name(service), endpoint}
	cluster.WaitFor(a, "the watch to tell of another endpoint", func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if at = h.pointed[p]; at.Before(start) {
			return fmt.Errorf("%v was last heard of at %s", p, at)
		}
		return nil
	})
	return at
}

// of waits until an event is heard of an object that is later than start, and returns how much.
func (h *hearing) of(a *arena, object string, event watch.EventType, start time.Time) (after time.Duration) {
	a.Helper()
	cluster.WaitFor(a, fmt.Sprintf("the watch to tell of %s %s", event, object), func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		last := h.last[object]
		if last.event != event || last.at.Before(start) {
			return fmt.Errorf("the last was %s at %s", last.event, last.at)
		}
		after = last.at.Sub(start)
		return nil
	})
	return after
}
