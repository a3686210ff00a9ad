// Package userspace is the userspace mode: connections to a Service end at a proxy on this node, which opens others to the
// endpoints. See README.md for the way of a packet.
//
//	plan ──▶ mapped plan ──▶ inner mode's Compile ──▶ its Ruleset ──▶ its Apply
//	   └───▶ targets ───────────────────────────────────────────────▶ the proxy (package relay)
//
// The mapped plan is the plan with one endpoint in each list: the port of the node where the proxy listens for that list.
// An inner mode, nftables or iptables, leads connections there as to any endpoint. So who is rejected, dropped, kept out
// by source ranges or guarded is all the inner mode's business, and the same as in it.
//
// Everything but Apply is pure. Invariant: the rules lead to no port before the proxy listens at it, and the proxy listens
// at each as long as they do.
package userspace
