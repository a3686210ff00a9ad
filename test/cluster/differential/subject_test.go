package differential_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"sluice/internal/model"
)

// subject is a Service as the API server has it, with its EndpointSlices.
type subject struct {
	service *v1.Service
	slices  map[string]*discovery.EndpointSlice
	members []member
	gone    bool // it has been deleted, and nobody has its name
}

// create makes a Service and its slices.
func (w *world) create(ctx context.Context, d *drawer, name string) (*subject, error) {
	drawn := d.service(name)
	o := &subject{slices: map[string]*discovery.EndpointSlice{}}
	var err error
	if o.service, err = w.Client.CoreV1().Services(namespace).Create(ctx, drawn, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create\n%s\n%w", text(drawn), err)
	}
	if err := w.setStatus(ctx, o, drawn.Status); err != nil {
		return nil, err
	}
	return o, w.setMembers(ctx, d, o)
}

// change draws a living Service anew, apart from its families. The API server may give one node port to two of its
// ports, and refuse that: then it is drawn again.
func (w *world) change(ctx context.Context, d *drawer, o *subject) error {
	if o.service.Spec.ClusterIP == v1.ClusterIPNone {
		return w.setMembers(ctx, d, o)
	}
	for try := 1; ; try++ {
		s := o.service.DeepCopy()
		d.redraw(s)
		changed, err := w.Client.CoreV1().Services(namespace).Update(ctx, s, metav1.UpdateOptions{})
		if err != nil && strings.Contains(err.Error(), "duplicate nodePort") && try < 10 {
			continue
		}
		if err != nil {
			return fmt.Errorf("update\n%s\n%w", text(s), err)
		}
		o.service = changed
		if err := w.setStatus(ctx, o, s.Status); err != nil {
			return err
		}
		return w.setMembers(ctx, d, o)
	}
}

// relabel gives a Service to another proxy, or takes it back.
func (w *world) relabel(ctx context.Context, o *subject) (err error) {
	s := o.service.DeepCopy()
	if _, other := s.Labels[labelOtherProxy]; other {
		delete(s.Labels, labelOtherProxy)
	} else {
		s.Labels = map[string]string{labelOtherProxy: "other"}
	}
	o.service, err = w.Client.CoreV1().Services(namespace).Update(ctx, s, metav1.UpdateOptions{})
	return err
}

func (w *world) setStatus(ctx context.Context, o *subject, status v1.ServiceStatus) (err error) {
	if o.service.Spec.Type != v1.ServiceTypeLoadBalancer {
		return nil
	}
	s := o.service.DeepCopy()
	s.Status = status
	if o.service, err = w.Client.CoreV1().Services(namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("status of\n%s\n%w", text(s), err)
	}
	return nil
}

// setMembers draws the endpoints anew.
func (w *world) setMembers(ctx context.Context, d *drawer, o *subject) error {
	o.members = d.members()
	api := w.Client.DiscoveryV1().EndpointSlices(namespace)
	for _, s := range w.slices(d, o.service, o.members) {
		write := func() (*discovery.EndpointSlice, error) { return api.Create(ctx, s, metav1.CreateOptions{}) }
		if _, have := o.slices[s.Name]; have {
			write = func() (*discovery.EndpointSlice, error) { return api.Update(ctx, s, metav1.UpdateOptions{}) }
		}
		written, err := write()
		if err != nil {
			return fmt.Errorf("write\n%s\n%w", text(s), err)
		}
		o.slices[s.Name] = written
	}
	return nil
}

// remove deletes a Service with its slices.
func (w *world) remove(ctx context.Context, o *subject) error {
	for name := range o.slices {
		err := w.Client.DiscoveryV1().EndpointSlices(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil {
			return err
		}
	}
	o.gone = true
	return w.Client.CoreV1().Services(namespace).Delete(ctx, o.service.Name, metav1.DeleteOptions{})
}

// count is how many endpoints of a family the slices list.
func (o *subject) count(f model.Family) (n int) {
	for _, s := range o.slices {
		if s.AddressType == discovery.AddressType(f.String()) {
			n += len(s.Endpoints)
		}
	}
	return n
}

// String is the subject in YAML, as kubectl applies it.
func (o *subject) String() string {
	all := []string{text(o.service)}
	for _, name := range slices.Sorted(maps.Keys(o.slices)) {
		if s := o.slices[name]; len(s.Endpoints) > 0 {
			all = append(all, text(s))
		}
	}
	return strings.Join(all, "---\n")
}

// text is an object without what the API server adds.
func text(object metav1.Object) string {
	var bare metav1.Object
	switch o := object.(type) {
	case *v1.Service:
		o = o.DeepCopy()
		o.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
		bare = o
	case *discovery.EndpointSlice:
		o = o.DeepCopy()
		o.TypeMeta = metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
		bare = o
	}
	bare.SetManagedFields(nil)
	bare.SetUID("")
	bare.SetResourceVersion("")
	b, err := yaml.Marshal(bare)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
