package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// slis are what /metrics/slis tells: how checks of health went.
type slis struct {
	registry *prometheus.Registry
	result   *prometheus.GaugeVec
	results  *prometheus.CounterVec
}

func newSLIs(start time.Time) slis {
	s := slis{
		result:  newGaugeVec("kubernetes_healthcheck", "The result of a check of health: 1 is good.", "name", "type"),
		results: newCounterVec("kubernetes_healthchecks_total", "Checks of health by their result.", "name", "type", "status"),
	}
	started := newGauge("process_start_time_seconds", "When this process began.")
	started.Set(seconds(start))
	s.registry = registry([]prometheus.Collector{s.result, s.results, started})
	return s
}

// pinged counts a question at /healthz of the metrics port.
func (s *slis) pinged() {
	s.result.WithLabelValues("ping", "healthz").Set(1)
	s.results.WithLabelValues("ping", "healthz", "success").Inc()
}
