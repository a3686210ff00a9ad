// Package iptwalk walks the first packet of a connection through an iptables ruleset, whoever wrote it, and tells its
// verdict, the endpoints with their effective shares, and the rules that decided.
//
// The walk is symbolic (see package weigh). A state is the packet's destination, marks and what was translated. Every
// rule divides the flow into what it matches and what goes on; a statistic match takes its share, and a match that is
// not known here takes half, which makes the result uncertain if it matters.
//
// Invariant: no share is lost: what goes in is dropped, rejected, or comes out.
package iptwalk
