// Package metrics has the numbers of the daemon in the form that Prometheus reads: kube-proxy's, by their names, types and
// labels, and Sluice's own.
//
//	reconcile.Loop ──Observer──▶ Metrics ──Handler──▶ /metrics
//
// Invariant: what is not known is absent, never 0.
package metrics
