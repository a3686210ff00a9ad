// Package sysctl reads and writes kernel settings under /proc/sys.
//
// Settings under net belong to the network namespace of the calling thread. The daemon uses the package to turn
// forwarding on and to raise limits; it never lowers what an administrator has set.
//
// Invariant: a value that is already right is not written, so that a read-only /proc/sys does no harm then.
package sysctl
