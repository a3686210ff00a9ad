// Package health answers at the health check node ports of Services: load balancers ask there whether this node has
// endpoints, so that they send traffic only to nodes that do.
//
//	plan.Plan ──Update──▶ Server ◀──HTTP── load balancer
//
// The answers are kube-proxy's, byte for byte. A port is listened at for exactly as long as the plan has it.
package health
