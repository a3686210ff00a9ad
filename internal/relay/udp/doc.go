// Package udp relays datagrams between clients and the endpoints of their Service.
//
//	client ──▶ socket of a Listener ──session──▶ connected socket ──▶ endpoint
//	       ◀─────from where it was sent to─────                   ◀──
//
// A [Listener] is the socket of one list of endpoints. What one client sends from one port to one of its addresses is a
// session: it has one endpoint, and a socket of its own towards it, by which answers are told apart. An [Engine] holds
// what all Listeners share: the limits, the buffers, and the time after which silent sessions end.
//
// A session ends when it has been silent for too long, when its endpoint refuses, or when the endpoint leaves the list
// and does not drain; the client's next datagram begins another. Its times are those of connection tracking: 120
// seconds without a datagram when there are datagrams both ways after its first two seconds (a stream), else 30.
//
// When there are as many sessions as there may be, the one that has been silent for longest of those that are no streams
// goes first. Streams stay: a flood from made up addresses costs them nothing but the time to read it.
//
// Invariants: a session that is silent holds no buffer. Reading a Listener waits for nothing but its datagrams: what
// takes long, such as to open a session, is done beside it, and what cannot be passed on at once is dropped and counted.
package udp
