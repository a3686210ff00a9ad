package app

import (
	"context"
	"sync"
	"sync/atomic"

	"sluice/internal/health"
	"sluice/internal/model"
	"sluice/internal/reconcile"
	"sluice/internal/source/kube"
	"sluice/internal/status"
)

// cluster is an API server.
type cluster struct {
	client   *kube.Client
	recorder *kube.Recorder
	node     string
	log      Log

	object atomic.Pointer[model.Node] // of this node; nil: there is none
	told   bool                       // watch's alone
}

func (c *cluster) watch(ctx context.Context, pass func(reconcile.Event)) error {
	ctx, stop := context.WithCancel(ctx)
	var recording sync.WaitGroup
	recording.Go(func() { c.recorder.Run(ctx) })
	defer recording.Wait()
	defer stop()
	return c.client.Watch(ctx, c.node, func(change kube.Change) {
		if object, ok := change.Delta.Nodes[c.node]; ok {
			c.object.Store(object)
		}
		if !c.told {
			c.told = true
			c.log.Info("objects read", "from", c.client.Host(), "node", c.node, "services", len(change.Delta.Services), "endpoint slices", len(change.Delta.Slices))
		}
		pass(eventOf(change))
	})
}

// eventOf is a change in the words of the loop. Its problems name their object.
func eventOf(change kube.Change) reconcile.Event {
	e := reconcile.Event{Input: &reconcile.Input{Delta: change.Delta}, Problems: make(map[any][]string, len(change.Problems))}
	for object, problems := range change.Problems {
		var texts []string
		for _, p := range problems {
			texts = append(texts, object.String()+": "+p)
		}
		e.Problems[object] = texts
	}
	for _, t := range change.Triggers {
		e.Input.Triggers = append(e.Input.Triggers, reconcile.Trigger(t))
	}
	return e
}

func (c *cluster) tell(e event) {
	about := kube.Reference{Object: kube.Object{Kind: "Service", Name: e.service}}
	if e.service == (model.Name{}) {
		about = kube.Reference{Object: kube.Object{Kind: "Node", Name: model.Name{Name: c.node}}, UID: c.node}
	}
	kind := "Normal"
	if e.warning {
		kind = "Warning"
	}
	c.recorder.Event(about, kind, e.reason, e.action, e.note)
}

func (c *cluster) eligible() bool { return health.Eligible(c.object.Load()) }

func (c *cluster) state() *status.API {
	s := c.client.State()
	api := &status.API{Server: c.client.Host(), Synced: s.Synced, Connected: s.Connected, Since: s.Since, Error: s.Error}
	for _, k := range s.Kinds {
		api.Kinds = append(api.Kinds, status.Kind(k))
	}
	return api
}
