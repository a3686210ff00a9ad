package metrics

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
)

// Metrics are the numbers of one daemon. It is safe for concurrent use.
type Metrics struct {
	proxy  proxy
	own    own
	client client
	slis   slis
	asked  asked

	common *prometheus.Registry
	modes  map[string]*prometheus.Registry
	mode   atomic.Pointer[prometheus.Registry] // of the mode that is at work; nil: of none
}

var _ reconcile.Observer = (*Metrics)(nil)

// New makes the metrics of a mode, the value of --mode; empty: it is not chosen yet.
func New(mode string, info Info) *Metrics {
	m := &Metrics{proxy: newProxy(), own: newOwn(), client: newClient(), slis: newSLIs(time.Now())}
	m.common = registry(m.proxy.common(), m.own.all(), m.client.all(), []prometheus.Collector{
		&m.asked, info.build(), info.features(),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	})
	m.modes = map[string]*prometheus.Registry{
		"iptables": registry(m.proxy.full(), m.proxy.iptables()),
		"nftables": registry(m.proxy.full(), m.proxy.nftables()),
		"ipvs":     registry(m.proxy.full()), "userspace": registry(m.proxy.full()),
	}
	m.SetMode(mode)
	return m
}

func registry(all ...[]prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	for _, cs := range all {
		r.MustRegister(cs...)
	}
	return r
}

// SetMode has the metrics of another mode. What was counted stays.
func (m *Metrics) SetMode(mode string) { m.mode.Store(m.modes[mode]) }

// Ask has a scrape ask s from now on.
func (m *Metrics) Ask(s Source) { m.asked.source.Store(&s) }

// gatherer collects all numbers as they are now.
func (m *Metrics) gatherer() prometheus.Gatherers {
	all := prometheus.Gatherers{m.common}
	if mode := m.mode.Load(); mode != nil {
		all = append(all, mode)
	}
	return all
}

// Handler answers /metrics.
func (m *Metrics) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		promhttp.HandlerFor(m.gatherer(), promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
	})
}

// SLIs answers /metrics/slis.
func (m *Metrics) SLIs() http.Handler {
	return promhttp.HandlerFor(m.slis.registry, promhttp.HandlerOpts{})
}

// Answered counts an answer at the health port, by its path without the slash.
func (m *Metrics) Answered(path string, code int) {
	switch path {
	case "healthz":
		m.proxy.healthz.WithLabelValues(strconv.Itoa(code)).Inc()
	case "livez":
		m.proxy.livez.WithLabelValues(strconv.Itoa(code)).Inc()
	}
}

// Pinged counts a question at /healthz of the metrics port, which is always answered well.
func (m *Metrics) Pinged() { m.slis.pinged() }

// Request counts a request to the API server.
func (m *Metrics) Request(verb, code, host string, took time.Duration) {
	m.client.requests.WithLabelValues(code, verb, host).Inc()
	m.client.latency.WithLabelValues(verb, host).Observe(took.Seconds())
}

// Absorbed counts changed objects.
func (m *Metrics) Absorbed(services, slices int) {
	m.proxy.serviceChanges.Add(float64(services))
	m.proxy.endpointChanges.Add(float64(slices))
}

// Planned counts what changed in the plan.
func (m *Metrics) Planned(changes plan.Changes) {
	for _, c := range changes.Ports {
		for _, side := range []struct {
			port *plan.Port
			by   float64
		}{{c.Old, -1}, {c.New, 1}} {
			if side.port != nil {
				m.proxy.noLocal.add(side.port, side.by)
				m.own.planned(side.port, side.by)
			}
		}
	}
}

// Applied measures an Apply.
func (m *Metrics) Applied(a reconcile.Applied) {
	took := a.End.Sub(a.Start).Seconds()
	for _, f := range model.Families {
		m.proxy.applied(f, a, took)
	}
	for _, p := range a.Programmed {
		m.proxy.programming[p.Family].Observe(p.Took.Seconds())
	}
	m.own.applied(a)
}

// Swept measures a sweep. It goes through the entries of both families at once, so it took as long for each.
func (m *Metrics) Swept(took time.Duration, removed [2]int, _ error) {
	for _, f := range model.Families {
		m.proxy.sweeps[f].Observe(took.Seconds())
		m.proxy.swept[f].Add(float64(removed[f]))
	}
}
