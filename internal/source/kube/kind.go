package kube

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sluice/internal/source/convert"
)

var (
	coreV1       = schema.GroupVersion{Version: "v1"}
	discoveryV1  = schema.GroupVersion{Group: "discovery.k8s.io", Version: "v1"}
	networkingV1 = schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	eventsV1     = schema.GroupVersion{Group: "events.k8s.io", Version: "v1"}
)

// The kinds, in the order in which they are watched.
const (
	serviceKind     = "Service"
	sliceKind       = "EndpointSlice"
	nodeKind        = "Node"
	serviceCIDRKind = "ServiceCIDR"
)

// kind is one kind of objects, and which of them are asked for.
type kind struct {
	name     string
	group    schema.GroupVersion
	resource string
	labels   string // selector
	fields   string // selector
	// optional is a kind that a plan works without.
	optional bool
	// convert fills in what an object means. It takes any object, and leaves the item empty for one of another kind.
	convert func(runtime.Object, *item)
}

// kinds are those to watch, with kube-proxy's selectors. A label that is set or taken away on a living object comes
// from the server as its deletion or creation.
func kinds(node string) []*kind {
	return []*kind{
		{
			name: serviceKind, group: coreV1, resource: "services", convert: convertService,
			labels: "!service.kubernetes.io/service-proxy-name", fields: "spec.clusterIP!=None",
		},
		{
			name: sliceKind, group: discoveryV1, resource: "endpointslices", convert: convertSlice,
			labels: "!service.kubernetes.io/headless",
		},
		{
			name: nodeKind, group: coreV1, resource: "nodes", convert: convertNode, optional: true,
			fields: fields.OneTermEqualSelector("metadata.name", node).String(),
		},
		{
			name: serviceCIDRKind, group: networkingV1, resource: "servicecidrs", convert: convertServiceCIDR, optional: true,
		},
	}
}

func convertService(in runtime.Object, out *item) {
	if s, ok := in.(*corev1.Service); ok {
		value, problems := convert.Service(s)
		out.fill(value != nil, value, problems)
	}
}

func convertSlice(in runtime.Object, out *item) {
	if s, ok := in.(*discoveryv1.EndpointSlice); ok {
		value, problems := convert.Slice(s)
		out.fill(value != nil, value, problems)
		out.trigger = triggerTime(s.Annotations)
	}
}

func convertNode(in runtime.Object, out *item) {
	if n, ok := in.(*corev1.Node); ok {
		value, problems := convert.Node(n)
		out.fill(value != nil, value, problems)
	}
}

func convertServiceCIDR(in runtime.Object, out *item) {
	if c, ok := in.(*networkingv1.ServiceCIDR); ok {
		value, problems := convert.ServiceCIDR(c)
		out.fill(value != nil, value, problems)
	}
}
