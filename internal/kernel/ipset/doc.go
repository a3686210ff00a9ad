// Package ipset reads and writes the kernel's sets of addresses and ports (ipset), which rules of iptables ask with
// "-m set".
//
// It speaks netlink itself. github.com/vishvananda/netlink, whose numbers and words for errors it uses, sends each entry in
// a message of its own, has no marks of entries (skbinfo), cannot ask for a size, and logs what it does not know.
//
// # Revisions
//
// A set has the lowest revision of its type that can do what is asked, so that an ipset program older than the kernel
// lists it, and so that a set is the same as one made by kube-proxy.
//
// Invariant: what is there already, or is gone already, is no error.
package ipset
