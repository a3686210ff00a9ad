// Package ipvs is the ipvs mode: the kernel's virtual servers spread connections, and an inner mode ([Deps].Rules) does
// with netfilter what virtual servers cannot. See README.md for the way of a packet.
//
//	plan ──▶ Compile ─┬▶ virtual servers, addresses ──▶ diff ──▶ operations ──▶ netlink
//	                  │                                  ▲ what the kernel has
//	                  └▶ inner Ruleset: marks for masquerading, refuses, guards, filters
//
// Everything up to the operations is pure.
//
// Invariant: a destination loses no connection because it is no longer wanted. Its weight becomes 0, and it goes when its
// connections have; UDP, which has none, goes at once.
package ipvs
