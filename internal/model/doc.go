// Package model holds what Sluice knows about Services, their endpoints and the nodes, as plain values.
//
// A source fills a [Snapshot]; package plan reads it. The values are immutable once they are in a Snapshot: whoever
// wants another value makes a new one, so that a pointer that did not change means an object that did not change.
// The package knows neither Kubernetes types nor the kernel; addresses are net/netip values, and an IPv4 address is
// never kept in its IPv6-mapped form.
package model
