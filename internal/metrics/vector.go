package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/model"
)

const labelFamily = "ip_family"

// The series of both families are made at once: to find one costs more than to count.
type (
	histograms [2]prometheus.Observer
	counters   [2]prometheus.Counter
)

func newHistograms(name, help string, buckets []float64) (*prometheus.HistogramVec, histograms) {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{labelFamily})
	var h histograms
	for _, f := range model.Families {
		h[f] = v.WithLabelValues(f.String())
	}
	return v, h
}

func newCounters(name, help string) (*prometheus.CounterVec, counters) {
	v := newCounterVec(name, help, labelFamily)
	var c counters
	for _, f := range model.Families {
		c[f] = v.WithLabelValues(f.String())
	}
	return v, c
}

func newCounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newCounter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func newGaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func newGauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}
