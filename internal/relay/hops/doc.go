// Package hops tells when what the proxy opens comes back to the proxy.
//
// An endpoint may be an address that rules lead to the proxy: the cluster IP of another Service, which is a way that ends
// at that one's endpoints, or by mistake an address of the Service's own, which has no end. A [Set] knows the sockets that
// the proxy has opened towards endpoints, so who has come by one of them is known when the proxy meets it again. Rules may
// have given it another address and port on the way, so connection tracking is asked where it came from. Only who goes
// where the proxy has gone itself is worth that question, which clients of Services hardly ever do.
package hops
