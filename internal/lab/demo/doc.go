// Package demo tells how Services work, as a story in chapters that happens while it is told: in a lab of network
// namespaces, with the real daemon on the lab's node and real connections.
//
// It stands at the end of the flow: it writes manifests, runs this program's own verbs (run, trace, cleanup) on the node,
// and looks at the kernel from outside of them. Invariant: whatever a chapter says is checked there and then, and [Run]
// reports success only if every check held.
package demo
