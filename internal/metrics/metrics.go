package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sluice/internal/model"
	"sluice/internal/reconcile"
)

// Info is what the metrics tell of this program.
type Info struct {
	Version, Commit, Go, Platform string
	Features                      map[string]bool
}

// Metrics are the numbers of one daemon.
type Metrics struct {
	registry          *prometheus.Registry
	sync, programming *prometheus.HistogramVec
	last              *prometheus.GaugeVec
	services, slices  prometheus.Counter
	answers, requests *prometheus.CounterVec
}

var _ reconcile.Observer = (*Metrics)(nil)

// New makes the metrics of a mode.
func New(_ string, _ Info) *Metrics {
	family := []string{"ip_family"}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		sync: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubeproxy_sync_proxy_rules_duration_seconds", Help: "How long it took to write the rules.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, family),
		programming: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubeproxy_network_programming_duration_seconds", Help: "From a change of endpoints to the rules.", Buckets: prometheus.ExponentialBuckets(0.25, 2, 10),
		}, family),
		last:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubeproxy_sync_proxy_rules_last_timestamp_seconds", Help: "When rules were last written."}, family),
		services: prometheus.NewCounter(prometheus.CounterOpts{Name: "kubeproxy_sync_proxy_rules_service_changes_total", Help: "Changed Services."}),
		slices:   prometheus.NewCounter(prometheus.CounterOpts{Name: "kubeproxy_sync_proxy_rules_endpoint_changes_total", Help: "Changed EndpointSlices."}),
		answers:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubeproxy_proxy_healthz_total", Help: "Answers of /healthz."}, []string{"code"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_requests_total", Help: "Requests to the API server."}, []string{"code", "method", "host"}),
	}
	m.registry.MustRegister(m.sync, m.programming, m.last, m.services, m.slices, m.answers, m.requests,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// SetMode has the metrics of another mode.
func (m *Metrics) SetMode(string) {}

// Handler answers /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// SLIs answers /metrics/slis.
func (m *Metrics) SLIs() http.Handler { return m.Handler() }

// Answered counts an answer at the health port.
func (m *Metrics) Answered(path string, code int) {
	if path == "healthz" {
		m.answers.WithLabelValues(strconv.Itoa(code)).Inc()
	}
}

// Pinged counts a question at the metrics port.
func (m *Metrics) Pinged() {}

// Request counts a request to the API server.
func (m *Metrics) Request(verb, code, host string, _ time.Duration) {
	m.requests.WithLabelValues(code, verb, host).Inc()
}

// Absorbed counts changes.
func (m *Metrics) Absorbed(services, slices int) {
	m.services.Add(float64(services))
	m.slices.Add(float64(slices))
}

// Applied measures an Apply.
func (m *Metrics) Applied(a reconcile.Applied) {
	for _, f := range model.Families {
		if a.Failed[f] {
			continue
		}
		m.sync.WithLabelValues(f.String()).Observe(a.End.Sub(a.Start).Seconds())
		m.last.WithLabelValues(f.String()).Set(float64(a.End.UnixNano()) / 1e9)
	}
	for _, p := range a.Programmed {
		m.programming.WithLabelValues(p.Family.String()).Observe(p.Took.Seconds())
	}
}

// Swept measures a sweep.
func (m *Metrics) Swept(time.Duration, [2]int, error) {}
