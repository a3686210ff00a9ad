package kube

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Client speaks to one API server.
type Client struct {
	log    *slog.Logger
	config *rest.Config
	http   *http.Client
	params runtime.ParameterCodec
	groups map[schema.GroupVersion]rest.Interface
	pace   pace
	used   atomic.Bool // by Watch
	link   *link
}

// Dial reads the configuration. It sends nothing to the API server: one that does not answer, or refuses, shows in the
// Client's State. What client-go says goes to the Log from then on, for the whole process, so that it has to be called
// before another Client is at work. The error is for a configuration that is none, and is ErrNoCluster if there is none at all.
func Dial(o Options) (*Client, error) {
	config, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	routeLibraryLog(o.Log)
	return dial(config, o.Log)
}

func dial(config *rest.Config, log *slog.Logger) (*Client, error) {
	scheme := newScheme()
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(1, config.Burst))
	}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("use the configuration of the API server %s: %w", redacted(config.Host), err)
	}
	c := &Client{
		log: log, config: config, http: http, params: runtime.NewParameterCodec(scheme),
		groups: map[schema.GroupVersion]rest.Interface{}, link: newLink(log, redacted(config.Host)), pace: usualPace,
	}
	return c, c.connectGroups()
}

func (c *Client) connectGroups() error {
	for _, gv := range []schema.GroupVersion{coreV1, discoveryV1, networkingV1, eventsV1} {
		config := rest.CopyConfig(c.config)
		config.GroupVersion, config.APIPath = &gv, "/apis"
		if gv.Group == "" {
			config.APIPath = "/api"
		}
		group, err := rest.RESTClientForConfigAndClient(config, c.http)
		if err != nil {
			return fmt.Errorf("use the configuration of the API server %s: %w", redacted(config.Host), err)
		}
		c.groups[gv] = group
	}
	return nil
}

// Host is the URL of the API server, without a password that may be in it.
func (c *Client) Host() string { return redacted(c.config.Host) }

// redacted is a URL as anybody may read it.
func redacted(host string) string {
	if u, err := url.Parse(host); err == nil && u.User != nil {
		return u.Redacted()
	}
	return host
}

// State is how the Client stands with the API server at this moment.
func (c *Client) State() State { return c.link.state() }

// Watch calls notify with all there is, once all kinds are known, and then with what changes, until ctx ends; calls
// come one after another, and what changes during one comes in the next. The node is the name of the Node that is
// read. A Client watches once; the error is for one that does already.
//
// Services and EndpointSlices are waited for as long as it takes. The Node and the ServiceCIDRs are not if the server
// refuses or does not serve them, or is slow with them alone: they come later, if they come.
func (c *Client) Watch(ctx context.Context, node string, notify func(Change)) error {
	if c.used.Swap(true) {
		return fmt.Errorf("watch %s: is being watched already", c.Host())
	}
	return c.watch(ctx, node, notify)
}
