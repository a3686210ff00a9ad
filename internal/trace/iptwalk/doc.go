// Package iptwalk walks the first packet of a connection through an iptables ruleset, whoever wrote it, and tells its
// verdict, the endpoints with their effective shares, and the rules that decided.
//
// The walk is symbolic. What enters a chain is a flow: the states a packet can be in (destination, marks, what was
// translated), each with its share of all such packets. Every rule divides the flow into what it matches and what goes
// on; a statistic match takes its share, and a match that is not known here takes half, which makes the result
// uncertain if it matters. Equal states are added up, so the cost grows with the rules walked, not with the ways
// through them.
//
// Invariant: no share is lost: what goes in is dropped, rejected, or comes out.
package iptwalk
