// Package flows tells which entries of the kernel's connection tracking contradict the plan.
//
// The kernel decides once per connection where its packets go, and UDP has no end of a connection: a client that keeps
// sending from one socket keeps the decision alive for ever, also when its endpoint is long gone. So, after the rules,
// entries that the plan would decide otherwise are removed, and the client's next packet is decided anew.
//
//	plan.Plan + plan.Changes ─▶ History; Plan × Flow ─▶ stale or not
//
// The package is pure. An entry that may be another's is never called stale: only what goes to a frontend of the plan,
// or to one that a [History] remembers, is looked at. The one exception is the start, when nothing is remembered.
package flows
