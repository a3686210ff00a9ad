// Package sysctl reads and writes kernel settings under /proc/sys.
//
// Settings under net belong to the network namespace of the calling thread. The daemon sets route_localnet, which node
// ports on localhost need, and what the configuration asks of connection tracking; it only looks at others.
//
// Invariant: a value that is already right is not written, so that a read-only /proc/sys does no harm then.
package sysctl
