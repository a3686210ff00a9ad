package kube

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	coreV1       = schema.GroupVersion{Version: "v1"}
	discoveryV1  = schema.GroupVersion{Group: "discovery.k8s.io", Version: "v1"}
	networkingV1 = schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	eventsV1     = schema.GroupVersion{Group: "events.k8s.io", Version: "v1"}
)
