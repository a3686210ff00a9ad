package kube

import (
	"fmt"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice/internal/model"
	"sluice/internal/source/convert"
)

// item is all that is kept of an object. It passes for an object itself, so that client-go's lists can hold it in the
// object's place. It is never changed once it is made.
type item struct {
	name     model.Name
	value    any // a value of package model; nil if the object means nothing
	problems []string
	trigger  time.Time // zero: none
}

// itemOf is what is kept of an object of a kind.
func (k *kind) itemOf(in any) (*item, error) {
	switch in := in.(type) {
	case *item:
		return in, nil
	case runtime.Object:
		object, err := meta.Accessor(in)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", k.name, err)
		}
		out := &item{name: nameOf(object)}
		k.convert(in, out)
		return out, nil
	}
	return nil, fmt.Errorf("read %s: %T is no object", k.name, in)
}

// itemsOf is a list, or a page of one, with items in place of the objects.
func (k *kind) itemsOf(list runtime.Object) (runtime.Object, error) {
	about, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("read a list of %s: %w", k.name, err)
	}
	out := &metainternal.List{Items: make([]runtime.Object, 0, meta.LenList(list))}
	out.ResourceVersion, out.Continue = about.GetResourceVersion(), about.GetContinue()
	return out, meta.EachListItem(list, func(object runtime.Object) error {
		it, err := k.itemOf(object)
		out.Items = append(out.Items, it)
		return err
	})
}

func (it *item) fill(meant bool, value any, problems []convert.Problem) {
	if meant {
		it.value = value
	}
	for _, p := range problems {
		if p.Severity != convert.Notice {
			it.problems = append(it.problems, problemText(p))
		}
	}
}

// problemText is a Problem on one line. Only an error goes without its severity.
func problemText(p convert.Problem) string {
	text := p.Message
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	if p.Severity != convert.Error {
		text = p.Severity.String() + ": " + text
	}
	return text
}

func nameOf(object metav1.Object) model.Name {
	return model.Name{Namespace: unique.Make(object.GetNamespace()).Value(), Name: object.GetName()}
}

// triggerTime is when something happened that led to this state of an EndpointSlice; zero if it does not say.
func triggerTime(annotations map[string]string) time.Time {
	text, ok := annotations[corev1.EndpointsLastChangeTriggerTime]
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// GetObjectKind is that an item has no kind of its own.
func (it *item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject is the item itself, since nobody changes it.
func (it *item) DeepCopyObject() runtime.Object { return it }
