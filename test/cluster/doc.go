// Package cluster is a whole Kubernetes cluster inside a test: etcd, kube-apiserver and kube-controller-manager as
// real processes, nodes and pods as network namespaces of a [sluice/internal/lab.Lab], and on each node the proxy that
// is tried, which is Sluice or upstream's kube-proxy.
//
// A test package hands its TestMain to [Main], and a test starts a cluster by [Start]. The kubelets and the scheduler
// are miniatures inside the test program: they give each Pod an address and a server behind its ports, and tell the
// API server what a real kubelet would. Everything else is what a user has: kubectl, client-go and real packets.
//
// Invariant: nothing outside the test program's own namespaces changes, and no process outlives the test program.
package cluster
