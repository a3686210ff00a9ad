// Package app wires the parts by hand, in order, one function for each verb of the command line. It is the only place,
// beside the lab, that sees them all.
//
//	cli ──Input──▶ app ──▶ source, plan, backend, trace, reconcile, health, kernel
//
// A verb that only shows something reads its input once, makes the plan and prints; [Run] keeps a kernel up to date, and
// answers [Status] meanwhile. What a verb does in each mode is in the file of that mode, behind one interface.
//
// An error that wraps [ErrInput] means that the user's input could not be used; an [Outcome] of BadNews means that the
// answer itself is.
package app
