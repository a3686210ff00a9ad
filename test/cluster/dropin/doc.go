// Package dropin has tests that start Sluice as a cluster would: with the files and the command line that kubeadm writes
// for kube-proxy, and as the pod of deploy/'s DaemonSet.
//
// Invariant: what is started is read from the very files that users apply, and nothing is added to it but the cluster's
// own addresses.
package dropin
