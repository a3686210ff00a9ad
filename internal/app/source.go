package app

import (
	"context"
	"errors"

	"sluice/internal/metrics"
	"sluice/internal/model"
	"sluice/internal/reconcile"
	"sluice/internal/source/kube"
	"sluice/internal/source/manifest"
	"sluice/internal/status"
)

// source is where a daemon has its objects from.
type source interface {
	// watch passes on all that there is, and then what changes, until ctx ends.
	watch(ctx context.Context, pass func(reconcile.Event)) error
	// tell tells who looks after an object of something that happened to it. It does not wait.
	tell(event)
	// eligible reports whether load balancers may send traffic to this node.
	eligible() bool
	// state is how it stands with an API server; nil: there is none.
	state() *status.API
}

// event is something that happened to this node, or here to a Service.
type event struct {
	service              model.Name // zero: it is about the node
	warning              bool
	reason, action, note string
}

// openSource finds the source that is asked for.
func (in Input) openSource(log Log, m *metrics.Metrics) (source, error) {
	if len(in.Manifests) > 0 {
		return in.openManifests(log)
	}
	s, err := in.openCluster(log, m)
	if errors.Is(err, kube.ErrNoCluster) {
		return nil, wrongInputf("there is nothing to read Services from: %w; give --kubeconfig, clientConnection.kubeconfig in a configuration file, or --manifests", err)
	}
	return s, err
}

// openManifests refuses what could only end in rules being taken away by mistake.
func (in Input) openManifests(log Log) (source, error) {
	for _, path := range in.Manifests {
		if path == manifest.Stdin {
			return nil, wrongInputf("--manifests -: standard input cannot be watched")
		}
		if err := manifest.Check(path); err != nil {
			return nil, wrongInputf("--manifests: %w", err)
		}
	}
	return &manifests{paths: in.Manifests, log: log, plan: planConfig(in.Config)}, nil
}

// openCluster reads how the API server is reached, and asks it nothing yet.
func (in Input) openCluster(log Log, m *metrics.Metrics) (source, error) {
	c := in.Config.Client
	client, err := kube.Dial(kube.Options{
		Kubeconfig: c.Kubeconfig, Master: c.Master, ContentType: c.ContentType, AcceptContentTypes: c.AcceptContentTypes,
		QPS: c.QPS, Burst: c.Burst, UserAgent: "sluice/" + readVersion().Version, Log: log.Logger,
		Requests: func(r kube.Request) { m.Request(r.Verb, r.Code, r.Host, r.Took) },
	})
	if err != nil {
		return nil, WrongInput(err)
	}
	node := in.policy(in.Config).NodeName
	return &cluster{client: client, recorder: client.Recorder(component, node), node: node, log: log}, nil
}

// component is who Events are from: those who look for kube-proxy's find them.
const component = "kube-proxy"
