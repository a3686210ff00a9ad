// Package test holds the tests of what is in deploy: that the Helm chart and the kustomize base and overlays make the
// same objects, that Kubernetes takes them, that the permissions are those which the source asks for, and that the
// program reads the configuration in them without a warning.
//
// It has no code of its own, and nothing imports it. Invariant: nothing here needs a cluster.
package test
