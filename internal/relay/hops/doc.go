// Package hops tells when what the proxy opens comes back to the proxy.
//
// An endpoint may be an address that rules lead to the proxy: the cluster IP of another Service, which is a way that ends
// at that one's endpoints, or by mistake an address of the Service's own, which has no end. A [Set] knows the sockets that
// the proxy has opened towards endpoints, so who has come by one of them is known when the proxy meets it again.
//
// A socket is known by its port and by where it was opened to: the kernel may give it another address on the way.
package hops
