// Package relay passes connections and datagrams from clients on to the endpoints of their Service, as a program and
// not by rules of the kernel.
//
//	kernel ──redirects──▶ listener of a Target ──pick──▶ endpoint
//	                          relay/tcp, relay/udp
//
// A [Target] is one list of endpoints of a Service port, and where it is listened at. A [Server] holds all Targets: it
// opens and closes their sockets, hands each to the engine of its protocol, bounds what all of them take, counts, and
// gives its sockets to the next process when the program is replaced. Packages tcp and udp move the bytes; package pick
// chooses endpoints, and package hops knows whom it sent itself. Package localhost has a Server listen where no rules lead.
//
// Invariants: a change costs what changed. What is being relayed outlives the Target that it came by, until it ends or
// Config.Drain has passed since its Service went. A limit that is reached refuses at once what is new, and touches nothing that is open.
package relay
