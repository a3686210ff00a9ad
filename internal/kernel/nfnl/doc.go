// Package nfnl is the socket to nf_tables: it commits batches of messages, reads objects back and hears of changes.
//
// It knows the framing of netlink and no more: what a message says is bytes to it. Message types are those of a netlink
// header, subsystem included; a payload is what follows that header, so it begins with the four bytes of nfgenmsg.
//
// The kernel answers within the call that asks. Once the system call that sends a batch returns, the transaction is
// over, and all its answers stand in the receive buffer; so a [Conn] never waits, and a context is looked at only
// between system calls. A [Listener] is the one that waits.
//
// Invariant: Commit returns nil only if the kernel said that it took the whole batch.
package nfnl
