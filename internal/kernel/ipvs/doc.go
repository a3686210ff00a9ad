// Package ipvs reads and writes the kernel's virtual servers (ip_vs), over netlink; the program ipvsadm is not needed.
//
// A virtual server is an address, protocol and port, or a firewall mark, at which the kernel takes connections and spreads
// them over destinations. A [Handle] is bound to one network namespace and works from any thread.
//
// Invariant: nothing is changed but what a call names. There is no call that removes all there is, since virtual servers
// have no owners and others may have theirs.
package ipvs
