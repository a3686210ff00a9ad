package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// listWatch asks for the objects of one kind.
type listWatch struct {
	*kind
	rest   rest.Interface
	params runtime.ParameterCodec
	link   *kindLink
}

func (c *Client) listWatch(k *kind) *cache.ListWatch {
	l := &listWatch{kind: k, rest: c.groups[k.group], params: c.params, link: c.link.of(k.name)}
	return &cache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}
}

// request is made once. To try again is for who called, so that a loss is told at once and not after ten tries.
func (l *listWatch) request(options *metav1.ListOptions) *rest.Request {
	options.LabelSelector, options.FieldSelector = l.labels, l.fields
	return l.rest.Get().Resource(l.resource).VersionedParams(options, l.params).MaxRetries(0)
}

// list gives items in place of the objects, page by page, so that no more than a page of objects is held.
func (l *listWatch) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := l.request(&options).Do(ctx).Get()
	if err != nil {
		l.link.failed(err)
		return nil, err
	}
	return l.itemsOf(list)
}

func (l *listWatch) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	w, err := l.request(&options).Watch(ctx)
	switch {
	case err == nil:
		l.link.watching()
	case options.SendInitialEvents != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		// A server without lists as streams. The reflector goes on with a list.
	default:
		l.link.failed(err)
	}
	return w, err
}
