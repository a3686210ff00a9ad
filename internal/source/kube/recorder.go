package kube

import (
	"context"
)

// Reference names the object that an Event is about.
type Reference struct {
	Object
	// UID may be empty, as it is for kube-proxy's Events. `kubectl describe node` finds Events whose UID is the Node's
	// name.
	UID string
}

// Recorder writes Events about Nodes and Services to the API server.
type Recorder struct{}

// Recorder makes a Recorder whose Events name a component, such as "kube-proxy", on a host. It needs to Run.
func (c *Client) Recorder(component, host string) *Recorder { return &Recorder{} }

// Run writes Events until ctx ends.
func (r *Recorder) Run(ctx context.Context) { <-ctx.Done() }

// Event is to be written. It never blocks: with too many waiting, it is dropped. The type is "Normal" or "Warning";
// reason and action are one word each in upper camel case.
func (r *Recorder) Event(about Reference, typ, reason, action, note string) {}
