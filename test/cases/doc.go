// Package cases replays faults that users of Service proxies ran into. Each file in testdata is one of them, in the form
// that package scenario reads: what was there, and the flows that are right. What needs more than a plan and packets,
// such as entries of connection tracking or rules of the host, is a test of its own here.
package cases
