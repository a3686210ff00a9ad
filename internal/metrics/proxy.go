package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/model"
	"sluice/internal/plan"
	"sluice/internal/reconcile"
)

// proxy are kube-proxy's metrics, but for those that are asked for at a scrape.
type proxy struct {
	sync, fullSync, partialSync, programming, sweeps histograms
	swept, restoreFailures, syncFailures             counters
	lastSync                                         *prometheus.GaugeVec
	last                                             [2]prometheus.Gauge // of lastSync; nil: none succeeded yet
	noLocal                                          noLocal
	serviceChanges, endpointChanges                  prometheus.Counter
	healthz, livez                                   *prometheus.CounterVec

	everyMode, fullAndPartial, ofIPTables, ofNFTables []prometheus.Collector
}

// kubeProxy is the name of one of kube-proxy's metrics.
func kubeProxy(name string) string { return "kubeproxy_" + name }

func newProxy() (p proxy) {
	quick := prometheus.ExponentialBuckets(0.001, 2, 15)
	var sync, programming, full, partial, sweeps *prometheus.HistogramVec
	var swept, restores, syncs *prometheus.CounterVec
	sync, p.sync = newHistograms(kubeProxy("sync_proxy_rules_duration_seconds"), "How long it took to bring the rules up to date.", quick)
	full, p.fullSync = newHistograms(kubeProxy("sync_full_proxy_rules_duration_seconds"), "The same, where the kernel was read back whole.", quick)
	partial, p.partialSync = newHistograms(kubeProxy("sync_partial_proxy_rules_duration_seconds"), "The same, where only what changed was written.", quick)
	programming, p.programming = newHistograms(kubeProxy("network_programming_duration_seconds"), "From the change of a pod or Service to the rules that follow it.", programmingBuckets())
	sweeps, p.sweeps = newHistograms(kubeProxy("conntrack_reconciler_sync_duration_seconds"), "How long it took to go through connection tracking.", quick)
	swept, p.swept = newCounters(kubeProxy("conntrack_reconciler_deleted_entries_total"), "Stale entries of connection tracking that were removed.")
	restores, p.restoreFailures = newCounters(kubeProxy("sync_proxy_rules_iptables_restore_failures_total"), "Times that the rules could not be brought up to date.")
	syncs, p.syncFailures = newCounters(kubeProxy("sync_proxy_rules_nftables_sync_failures_total"), "Times that the rules could not be brought up to date.")
	p.lastSync = newGaugeVec(kubeProxy("sync_proxy_rules_last_timestamp_seconds"), "When the rules were last up to date.", labelFamily)
	p.noLocal = newNoLocal()
	p.serviceChanges = newCounter(kubeProxy("sync_proxy_rules_service_changes_total"), "Changed Services.")
	p.endpointChanges = newCounter(kubeProxy("sync_proxy_rules_endpoint_changes_total"), "Changed EndpointSlices.")
	p.healthz = newCounterVec(kubeProxy("proxy_healthz_total"), "Answers at /healthz of the health port.", "code")
	p.livez = newCounterVec(kubeProxy("proxy_livez_total"), "Answers at /livez of the health port.", "code")

	p.everyMode = []prometheus.Collector{sync, programming, p.lastSync, p.noLocal.vector, p.serviceChanges, p.endpointChanges, p.healthz, p.livez}
	p.fullAndPartial = []prometheus.Collector{full, partial, sweeps, swept}
	p.ofIPTables, p.ofNFTables = []prometheus.Collector{restores}, []prometheus.Collector{syncs}
	return p
}

func (p *proxy) common() []prometheus.Collector   { return p.everyMode }
func (p *proxy) full() []prometheus.Collector     { return p.fullAndPartial }
func (p *proxy) iptables() []prometheus.Collector { return p.ofIPTables }
func (p *proxy) nftables() []prometheus.Collector { return p.ofNFTables }

// applied measures one family's part of an Apply.
func (p *proxy) applied(f model.Family, a reconcile.Applied, took float64) {
	p.sync[f].Observe(took)
	if a.Full {
		p.fullSync[f].Observe(took)
	} else {
		p.partialSync[f].Observe(took)
	}
	if a.Failed[f] {
		p.restoreFailures[f].Inc() // only one of the two is in a mode's registry
		p.syncFailures[f].Inc()
		return
	}
	if p.last[f] == nil {
		p.last[f] = p.lastSync.WithLabelValues(f.String())
	}
	p.last[f].Set(seconds(a.End))
}

// programmingBuckets are those of kube-proxy: 0.25 s and 0.5 s, every second to 59 s, every five to 115 s, and every 30
// to five minutes.
func programmingBuckets() []float64 {
	return slices.Concat(
		prometheus.LinearBuckets(0.25, 0.25, 2), prometheus.LinearBuckets(1, 1, 59),
		prometheus.LinearBuckets(60, 5, 12), prometheus.LinearBuckets(120, 30, 7))
}

// seconds is a time as Prometheus has it.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / float64(time.Second) }

// noLocal counts Service ports that have endpoints, and none here though their policy wants one.
type noLocal struct {
	vector             *prometheus.GaugeVec
	internal, external [2]prometheus.Gauge
}

func newNoLocal() (n noLocal) {
	n.vector = newGaugeVec(kubeProxy("sync_proxy_rules_no_local_endpoints_total"),
		"Service ports of traffic policy Local that have endpoints, but none on this node.", "traffic_policy", labelFamily)
	for _, f := range model.Families {
		n.internal[f] = n.vector.WithLabelValues("internal", f.String())
		n.external[f] = n.vector.WithLabelValues("external", f.String())
	}
	return n
}

func (n *noLocal) add(p *plan.Port, by float64) {
	if p.Internal[plan.ClientOutside].Action == plan.Drop {
		n.internal[p.ID.Family].Add(by)
	}
	if p.External[plan.ClientOutside].Action == plan.Drop {
		n.external[p.ID.Family].Add(by)
	}
}
