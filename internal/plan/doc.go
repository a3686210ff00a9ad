// Package plan decides what must be true on this node, once and for every backend: for each frontend (address,
// protocol, port) and each kind of client, which endpoints a new connection may reach, whether its source is
// rewritten, or whether it is rejected or dropped.
//
// It stands between the sources and the backends:
//
//	source ──Snapshot──▶ plan ──Plan──▶ backend
//
// [Build] computes a Plan from a whole Snapshot; a [Planner] keeps one and recomputes only the Service ports that a
// change touches. Both give the same Plan. The package is pure: no Kubernetes types, no kernel, no clock.
//
// The meaning follows kube-proxy v1.37. Where that is wrong on its own terms, Sluice does right;
// docs/differences.md lists every such place.
package plan
