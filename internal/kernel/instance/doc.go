// Package instance keeps a second Sluice from working on the same network namespace, and leads to the first.
//
// The mark is an abstract UNIX socket. The kernel keeps such names per network namespace, which is what two daemons
// would fight over, and lets go of them when the process ends, however it ends: no stale file is left to clean up.
// Anybody can take such a name, so one that a stranger holds counts for nothing, and the next name is taken instead:
// a user without power over the network must not keep Sluice from working.
//
// Other processes may ask the one that holds it, by [Dial]: those of root and of its own user. What it has open can be handed
// to the one that comes after it, by [SendFiles].
//
// Invariant: at most one process per network namespace holds a [Claim], as long as no stranger meddles.
package instance
