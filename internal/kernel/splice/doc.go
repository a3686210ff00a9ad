// Package splice moves bytes from one TCP socket to another inside the kernel, and asks sockets what the net package
// does not: where a redirected connection was going, whether what comes next is urgent, and how many files may be open.
//
// Nothing here blocks. What would have to wait is an EAGAIN, and the caller waits for the socket by the runtime's
// poller ([syscall.RawConn]).
package splice
