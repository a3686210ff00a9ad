package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What the API server takes of an Event, in bytes.
const (
	maxNote     = 1024
	maxInstance = 128
	maxName     = 253
)

// newEvent is an Event about an object. Events about what is in no namespace are in the namespace "default".
func newEvent(about Reference, now time.Time) *eventsv1.Event {
	namespace := about.Name.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	suffix := fmt.Sprintf(".%x", now.UnixNano())
	name := strings.TrimRight(cut(about.Name.Name, maxName-len(suffix)), ".-")
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + suffix},
		EventTime:  metav1.MicroTime{Time: now},
		Regarding: corev1.ObjectReference{
			APIVersion: coreV1.String(), Kind: about.Kind, Namespace: about.Name.Namespace, Name: about.Name.Name, UID: types.UID(about.UID),
		},
	}
}

// cut is the beginning of a text, whole characters of it.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// write creates an Event, or brings the count of one that is there up to date.
func (r *Recorder) write(ctx context.Context, e *eventsv1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	if e.Series != nil {
		if err := r.patch(ctx, e); !apierrors.IsNotFound(err) {
			return err
		}
	}
	err := r.rest.Post().Namespace(e.Namespace).Resource("events").Body(e).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil // an earlier try that seemed to fail
	}
	return err
}

func (r *Recorder) patch(ctx context.Context, e *eventsv1.Event) error {
	body, err := json.Marshal(map[string]any{"series": e.Series})
	if err != nil {
		return err
	}
	return r.rest.Patch(types.StrategicMergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).Body(body).Do(ctx).Error()
}
