// Package bench measures Sluice beside upstream's kube-proxy in one cluster with thousands of Services: what a start
// takes, how long after a write to the API a connection shows it, and what constant change does to those who connect to
// Services that stay. docs/benchmarks.md has a result.
//
// All take turns: while one is measured the others are stopped (SIGSTOP), so that none has a processor taken away by
// another, and the machine's mood is shared. Whoever goes on first catches up with what it missed and comes to rest.
//
// Nothing here passes or fails on time.
package bench
