package manifest

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"sluice/internal/model"
	"sluice/internal/source/convert"
)

// The values an object can have, beside those of packages convert and model.
type (
	service struct {
		*model.Service
		selector *convert.Selector // nil: none
	}
	slice struct {
		*model.Slice            // nil: nothing to give
		owner        model.Name // counts as having a slice all the same
	}
	endpoints []*model.Slice
	unused    struct{}
)

func idOf(h header) id {
	name := convert.NameOf(metav1.ObjectMeta{Namespace: h.Metadata.Namespace, Name: h.Metadata.Name})
	if h.Kind == "Node" || h.Kind == "ServiceCIDR" {
		name.Namespace = ""
	}
	return id{kind: h.Kind, name: name}
}

// apiVersionOf is the API version in which a kind is read, or "" for a kind that has no use here.
func apiVersionOf(kind string) string {
	switch kind {
	case "Service", "Pod", "Node", "Endpoints", "ReplicationController":
		return "v1"
	case "ReplicaSet", "Deployment":
		return "apps/v1"
	case "EndpointSlice":
		return "discovery.k8s.io/v1"
	case "ServiceCIDR":
		return "networking.k8s.io/v1"
	}
	return ""
}

// decode fills in the object's value.
func (o *object) decode(h header, js []byte) {
	want := apiVersionOf(h.Kind)
	if group, _, _ := strings.Cut(want, "/"); want == "" || !sameGroup(group, h) {
		o.id.kind = h.APIVersion + " " + h.Kind
		o.value = unused{}
		return
	}
	if h.APIVersion != want {
		o.skip("apiVersion", fmt.Sprintf("%q: must be %s", h.APIVersion, want))
		return
	}
	switch h.Kind {
	case "Service":
		set(o, js, convert.Service, func(in *corev1.Service, s *model.Service) any {
			return service{s, convert.SelectorOf(in)}
		})
	case "EndpointSlice":
		o.decodeSlice(js)
	case "Endpoints":
		set(o, js, endpointsOf, func(_ *corev1.Endpoints, e *endpoints) any { return *e })
	case "Pod":
		set(o, js, convert.PodOf, func(_ *corev1.Pod, p *convert.Pod) any { return p })
	case "Node":
		set(o, js, convert.Node, func(_ *corev1.Node, n *model.Node) any { return n })
	case "ServiceCIDR":
		set(o, js, convert.ServiceCIDR, func(_ *networkingv1.ServiceCIDR, c *model.ServiceCIDR) any { return c })
	case "ReplicationController":
		set(o, js, template[corev1.ReplicationController], func(_ *corev1.ReplicationController, t *convert.PodTemplate) any { return *t })
	case "ReplicaSet":
		set(o, js, template[appsv1.ReplicaSet], func(_ *appsv1.ReplicaSet, t *convert.PodTemplate) any { return *t })
	case "Deployment":
		set(o, js, template[appsv1.Deployment], func(_ *appsv1.Deployment, t *convert.PodTemplate) any { return *t })
	}
}

// sameGroup reports whether a kind known here is meant, if perhaps in an old version: another API may have a kind of
// the same name.
func sameGroup(group string, h header) bool {
	is, _, grouped := strings.Cut(h.APIVersion, "/")
	return is == group || !grouped || is == "extensions"
}

// decodeSlice keeps a slice that has nothing to give, since its Service then has slices of its own all the same.
func (o *object) decodeSlice(js []byte) {
	in := strict[discoveryv1.EndpointSlice](o, js)
	if in == nil {
		return
	}
	s, problems := convert.Slice(in)
	if !o.note(problems) {
		o.value = slice{s, convert.SliceOwner(in)}
	}
}

func endpointsOf(in *corev1.Endpoints) (*endpoints, []convert.Problem) {
	slices, problems := convert.Endpoints(in)
	return (*endpoints)(&slices), problems
}

func template[T any](in *T) (*convert.PodTemplate, []convert.Problem) {
	t, ok := convert.PodsOf(in)
	if !ok {
		return nil, []convert.Problem{{Field: "spec.template", Message: "required", Skipped: true}}
	}
	return &t, nil
}

// set decodes js as a T, converts it to a V, and makes the object's value of both.
func set[T, V any](o *object, js []byte, to func(*T) (*V, []convert.Problem), value func(*T, *V) any) {
	in := strict[T](o, js)
	if in == nil {
		return
	}
	v, problems := to(in)
	if !o.note(problems) && v != nil {
		o.value = value(in, v)
	}
}

// note adds problems and reports whether one of them takes the object away.
func (o *object) note(list []convert.Problem) (skipped bool) {
	for _, p := range list {
		o.problems = append(o.problems, problem{Problem: p})
		skipped = skipped || p.Skipped
	}
	return skipped
}

func (o *object) skip(field, message string) {
	o.note([]convert.Problem{{Field: field, Message: message, Skipped: true}})
}

// strict decodes js, or notes why it cannot and is nil. An unknown field is no more than a warning: it may be one of
// a newer API.
func strict[T any](o *object, js []byte) *T {
	in := new(T)
	unclear, err := kjson.UnmarshalStrict(js, in)
	if err != nil {
		o.skip(typeError(js, err))
		return nil
	}
	for _, e := range unclear {
		field := ""
		if f, ok := errors.AsType[kjson.FieldError](e); ok {
			field = f.FieldPath()
		}
		if strings.HasPrefix(e.Error(), "duplicate field") {
			o.skip(field, "given twice")
			in = nil
		} else {
			o.note([]convert.Problem{{Field: field, Message: "unknown field", Severity: convert.Warning}})
		}
	}
	return in
}
