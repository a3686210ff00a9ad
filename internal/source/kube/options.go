package kube

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ErrNoCluster is that no kubeconfig and no address is given, and that this process is in no Pod that would have one.
var ErrNoCluster = errors.New("no kubeconfig is given, and this process runs in no Pod")

// Options say which API server to speak to, and how. They are kube-proxy's clientConnection.
type Options struct {
	// Kubeconfig is a path; without it and Master, the service account of the Pod is used.
	Kubeconfig string
	// Master is the URL of the API server, in place of the one in Kubeconfig.
	Master string
	// ContentType is what requests are written in, and AcceptContentTypes what answers are asked for in; empty is
	// protobuf, or JSON where the server has no protobuf.
	ContentType        string
	AcceptContentTypes string
	// QPS is how many requests a second there are at most, after the first Burst of them. 0 is client-go's default and
	// less than 0 is without limit.
	QPS   float32
	Burst int
	// UserAgent is the name by which the API server knows this program; empty is client-go's default.
	UserAgent string
	Log       *slog.Logger
	// Requests, if set, is told of each request once its answer begins. It is called from many goroutines.
	Requests func(Request)
}

// Request is one request to an API server, for metrics.
type Request struct {
	Verb string // of HTTP: GET
	Code string // of HTTP: 200; "<error>" where there is no answer
	Host string
	Took time.Duration // until the answer began
}

const protobuf = "application/vnd.kubernetes.protobuf"

// restConfig is the Options as client-go takes them.
func (o *Options) restConfig() (*rest.Config, error) {
	config, err := o.clusterConfig()
	if err != nil {
		return nil, err
	}
	config.ContentType, config.AcceptContentTypes = o.ContentType, o.AcceptContentTypes
	if config.ContentType == "" {
		config.ContentType = protobuf
	}
	if config.AcceptContentTypes == "" && config.ContentType == protobuf {
		config.AcceptContentTypes = protobuf + ",application/json"
	}
	config.QPS, config.Burst, config.UserAgent = o.QPS, o.Burst, o.UserAgent
	if o.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if o.Requests != nil {
		config.Wrap(tellRequests(o.Requests))
	}
	return config, nil
}

func (o *Options) clusterConfig() (*rest.Config, error) {
	if o.Kubeconfig == "" && o.Master == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, ErrNoCluster
		} else if err != nil {
			return nil, fmt.Errorf("read the Pod's service account: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig},
		&clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: o.Master}},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", o.Kubeconfig, err)
	}
	return config, nil
}
