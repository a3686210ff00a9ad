package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/backend"
	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
)

// own are Sluice's metrics, but for those that are asked for at a scrape.
type own struct {
	ports, endpoints  *prometheus.GaugeVec
	planByFamily      [2]planned
	refused           prometheus.Gauge
	repairs, restored prometheus.Counter
	written           prometheus.Counter
	phases            *prometheus.HistogramVec
	phase             [len(backend.AllPhases)]prometheus.Observer
}

// planned is how much there is in the plan of one family.
type planned struct{ ports, endpoints prometheus.Gauge }

func newOwn() (o own) {
	o.ports = newGaugeVec("sluice_service_ports", "Service ports that are planned.", labelFamily)
	o.endpoints = newGaugeVec("sluice_service_endpoints", "Endpoints that Service ports send connections to, those of several counted for each.", labelFamily)
	for _, f := range model.Families {
		o.planByFamily[f] = planned{o.ports.WithLabelValues(f.String()), o.endpoints.WithLabelValues(f.String())}
	}
	o.refused = newGauge("sluice_refused_service_ports", "Service ports that the kernel, or the mode, does not take as they are planned.")
	o.repairs = newCounter("sluice_repairs_total", "Times that rules were restored which somebody else had changed.")
	o.restored = newCounter("sluice_restored_objects_total", "Chains, rules and elements that were restored.")
	o.written = newCounter("sluice_written_objects_total", "Chains, rules and elements that were added, changed or removed.")
	o.phases = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sluice_apply_phase_duration_seconds", Help: "What the time to bring the rules up to date went into.",
		Buckets: prometheus.ExponentialBuckets(0.00001, 4, 12),
	}, []string{"phase"})
	for _, p := range backend.AllPhases {
		o.phase[p] = o.phases.WithLabelValues(p.String())
	}
	return o
}

func (o *own) all() []prometheus.Collector {
	return []prometheus.Collector{o.ports, o.endpoints, o.refused, o.repairs, o.restored, o.written, o.phases}
}

func (o *own) planned(p *plan.Port, by float64) {
	of := &o.planByFamily[p.ID.Family]
	of.ports.Add(by)
	of.endpoints.Add(by * float64(p.EndpointsInUse()))
}

func (o *own) applied(a reconcile.Applied) {
	o.refused.Set(float64(a.Refused))
	o.written.Add(float64(a.Written))
	for p, took := range a.Phases {
		if took > 0 {
			o.phase[p].Observe(took.Seconds())
		}
	}
	if a.Restored > 0 {
		o.repairs.Inc()
		o.restored.Add(float64(a.Restored))
	}
}
