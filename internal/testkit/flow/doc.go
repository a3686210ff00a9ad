// Package flow asks, in several ways, what becomes of the first packet of a connection, and compares the answers.
//
// A [Flow] is one line of a test: who connects to what, and what must come of it. A [Way] answers it: from the plan,
// by a walk over a backend's rules, or with real packets. All ways must give the same [Outcome].
//
// Invariant: an Outcome says nothing of the way that found it, so two of them are equal exactly if users cannot tell
// them apart.
package flow
