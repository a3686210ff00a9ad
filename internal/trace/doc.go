// Package trace is the answer to "what happens to this packet": a verdict, the endpoints it may reach with their
// shares, and the steps that led there, as JSON and as text.
//
// The plan gives one answer, and each walker another from rules that were compiled for a backend or dumped from a
// kernel (iptwalk those of iptables, nftwalk those of nf_tables). They must agree: tests compare them with each other
// and with real packets.
//
// Invariant: the probabilities of a Result's endpoints and alternatives together are 1, unless it is uncertain.
package trace
