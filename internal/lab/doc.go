// Package lab builds throw-away clusters out of network namespaces, to try Services in with real packets.
//
// A [Topology] says which machines there are; [Up] makes them in namespaces of their own: the node, the pods on it, and
// everything that the node reaches through its uplink, which is other nodes, their pods and outside clients. A [Host] is
// one of them: it serves, dials and runs programs. `sluice demo` shows the lab to people, and the
// tests of every backend send their packets through it.
//
// Invariant: the lab touches nothing but namespaces that it made, and when it is closed they are gone with all that was
// in them. It only needs the right to make them, which [sluice/internal/kernel/netns.Isolate] gives to anyone.
package lab
