// Package weigh is what the walkers have in common. A walk is symbolic: what enters a chain is a [Flow], the states that
// a packet can be in, each with its share of all such packets. Rules divide it, and what becomes of all its parts, the
// [Ends], is the answer.
//
// Invariant: equal states are added up and no share is lost, so the cost grows with the rules walked, not with the ways
// through them.
package weigh
