// Package bench measures a node with thousands of Services beside what iptables-restore alone takes for the same rules in
// the same run, so that the ratios mean something on any machine. docs/benchmarks.md has a result.
//
// Nothing here passes or fails on time.
package bench
