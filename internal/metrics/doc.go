// Package metrics has the numbers of the daemon in the form that Prometheus reads: kube-proxy's, by their names, types,
// buckets and labels, and Sluice's own. docs/metrics.md lists all of them.
//
//	reconcile.Loop ──Observer──▶ Metrics ──Handler──▶ /metrics
//	                 Source ◀─── at a scrape
//
// Invariant: what is not known is absent, never 0; the number of series has a bound that no cluster moves; and a scrape
// reads the kernel for a hundredth of the time, beside the loop.
package metrics
