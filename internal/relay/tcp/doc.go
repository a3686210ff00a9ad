// Package tcp relays TCP connections to the endpoints of their Service.
//
//	client ──accept──▶ Listener ──pick, dial──▶ endpoint
//	client ◀════════ splice(2), both ways ════▶ endpoint
//
// A [Relay] is what all share: the limit of open connections, the pipes, the clock of dials. A [Listener] accepts for one
// [Service]. A connection costs two goroutines and two open files. It holds no buffer and no pipe while nothing moves:
// it waits until a socket is readable, and only then takes a pipe, moves what there is through it inside the kernel, and
// gives it back. Where there is no pipe to be had, bytes are copied to the other socket before they are taken off the
// first one, so a receiver that does not read holds up nobody else.
//
// What one side does, the other one sees: an urgent byte (MSG_OOB) as an urgent byte in its place, the end of a stream as
// the end of that stream, a reset as a reset. A client for whom no endpoint can be reached is reset too, for it must not
// take an empty answer for an answer. A reset is not waited with for a receiver that takes nothing: such connections are looked
// at every few seconds.
//
// Invariants: the limit refuses what is new and never touches what is open. No single error ends a Listener. What was
// accepted is either relayed or reset, and counted as one of them.
package tcp
