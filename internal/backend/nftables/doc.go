// Package nftables is the nftables mode: it compiles a Plan into one table of maps, and keeps the kernel's table equal
// to it over netlink. See README.md for the way of a packet.
//
//	plan ──▶ Compile ──▶ Ruleset ──▶ diff ──▶ delta ──▶ one transaction
//	                                  ▲ what was written last
//
// A Service port is elements of maps and no rules, so that a change writes a few elements whatever the number of
// Services. Everything up to the delta is pure.
//
// Invariant: at every moment, also between two lookups of one packet, a route leads to slots that are there.
package nftables
