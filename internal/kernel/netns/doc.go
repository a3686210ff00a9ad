// Package netns creates Linux network namespaces and runs code and programs in them.
//
// A network namespace belongs to a thread, and Go moves goroutines between threads; this package is the only place
// that deals with it. [NS.Do] runs a function on a thread of its own inside a namespace, [NS.Command] starts a program
// there, and [Isolate] runs this whole program again in namespaces of its own, which needs no root where the system
// lets ordinary users create user namespaces.
//
// Invariant: a thread that could not return to the namespace it came from never runs another goroutine.
package netns
