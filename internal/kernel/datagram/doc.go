// Package datagram reads and writes UDP sockets without a buffer for each socket that waits: thousands of sockets that
// are silent share a few buffers.
//
// All waiting is done by the runtime's poller ([syscall.RawConn]), which ends it when the socket is closed or its
// deadline passes. Nothing waits to send.
package datagram
