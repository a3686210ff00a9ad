// Package httpd serves HTTP on behalf of the daemon: at addresses that may change while it runs, within limits that a
// slow or greedy client cannot exceed.
//
//	config ──Move──▶ Server ──Handler──▶ health.Proxy, MetricsMux
//
// [MetricsMux] has kube-proxy's paths of the metrics port. What they tell comes in as functions, so that the answers
// are always of now.
//
// Invariant: a Server listens at the address it was last given, or says why not; never at an earlier one.
package httpd
