package kube

import (
	"time"

	"sluice/internal/model"
)

// Change is what is new since the Change before it.
type Change struct {
	Delta model.Delta
	// Problems are those of the objects whose problems changed. An empty list is the end of them.
	Problems map[Object][]string
	// Triggers say since when endpoints wait for this Change.
	Triggers []Trigger
}

// Object names an object of the API server.
type Object struct {
	Kind string     // such as "EndpointSlice"
	Name model.Name // without a namespace for a kind that has none
}

// String is "Service default/web" or "Node node-a".
func (o Object) String() string {
	if o.Name.Namespace == "" {
		return o.Kind + " " + o.Name.Name
	}
	return o.Kind + " " + o.Name.String()
}

// Trigger is the moment at which something happened to the Pods or the selector of a Service that led to a changed
// EndpointSlice. It is told with each change of the slice, since it is in whole seconds and two may have the same; but only if
// it is after this process began to watch.
type Trigger struct {
	Service model.Name
	Family  model.Family // of the slice
	At      time.Time
}
