// Package conntrack lists and deletes entries of the kernel's connection tracking, over netlink.
//
// A UDP flow keeps going where its first packet was sent for as long as packets come, so when a Service changes, the
// entries that lead to endpoints that are gone must go too. Which those are is decided elsewhere; this package reads
// and deletes.
//
// Invariant: deleting an entry that is gone already is success.
package conntrack
