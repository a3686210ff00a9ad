// Package swap has tests that put Sluice in the place of kube-proxy on a node that is in use, and kube-proxy back.
//
// Invariant: nobody who uses the node notices.
package swap
