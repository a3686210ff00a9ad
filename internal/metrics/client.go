package metrics

import "github.com/prometheus/client_golang/prometheus"

// client are client-go's metrics, by the names that Kubernetes' programs have them under.
type client struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
}

func newClient() client {
	return client{
		requests: newCounterVec("rest_client_requests_total", "Requests to the API server.", "code", "method", "host"),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rest_client_request_duration_seconds", Help: "From a request to the beginning of its answer.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
		}, []string{"verb", "host"}),
	}
}

func (c *client) all() []prometheus.Collector { return []prometheus.Collector{c.requests, c.latency} }
