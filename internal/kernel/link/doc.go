// Package link reads and shapes the interfaces, addresses and routes of a network namespace, over netlink.
//
// The daemon uses it to learn the node's addresses and to hear of changes, and in mode ipvs to have addresses of Services
// on an interface of their own; the lab uses it to wire namespaces together with veth pairs and bridges. A [Handle] is bound to one namespace and works from any thread.
//
// Invariant: a dump that the kernel says it interrupted is read again, and is never passed off as complete.
package link
