// Package scenarios has what users do to a cluster's Services, nodes and control plane as files, and what clients must
// get meanwhile and at the end.
//
// A file of testdata is a scenario: its steps are kubectl commands, faults, and the answers that pods, nodes and clients
// outside are to get. There is one cluster for all of them, in which node-a has mode nftables and node-b mode iptables,
// and every answer is asked for through both.
//
// Invariant: whatever a scenario does, the kernel of each node ends as a fresh start would make it, and clients of the
// Services that it does not touch notice nothing.
package scenarios
