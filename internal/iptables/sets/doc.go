// Package sets holds the kernel's sets of addresses and ports (ipset) as values: what rules with "-m set" ask.
//
// A compiler makes them, ipset lists the text that they write, and a walk over rules looks packets up in them.
//
// Invariant: a set holds what the kernel would find in it, under one spelling.
package sets
