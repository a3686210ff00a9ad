// Package localhost has the proxy serve node ports at this node's loopback addresses, 127.0.0.1 and ::1, where no rules do.
//
//	plan.Plan ──Update──▶ Server ──Put, Remove──▶ relay.Server
//
// Clients are processes of this node, so each node port has the endpoints that the plan has for those, whatever
// externalTrafficPolicy says of clients outside. A node port that refuses or drops them is not listened at: the kernel
// refuses at once. So it does with SCTP, which the proxy cannot take.
//
// Invariants: a change costs what changed. A node port is listened at for as long as the plan has it, or it is told why
// not. Where rules take over, the proxy listens until they stand.
package localhost
