// Package health answers whether traffic should come here.
//
//	load balancer ──healthCheckNodePort──▶ Server ◀──Update── plan.Plan
//	load balancer, kubelet ──/healthz, /livez──▶ Proxy ◀── how far the rules are behind
//
// A [Server] answers for one Service each: whether this node has endpoints of it. A [Proxy] answers for the whole
// proxy, and for its node. The answers are kube-proxy's, byte for byte.
//
// Invariant: a port is listened at for exactly as long as the plan has it, and at exactly the addresses that the plan
// has for node ports; or it is told why not.
package health
