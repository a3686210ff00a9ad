// Package convert turns Kubernetes API objects into the values of package model.
//
// It stands between the sources (manifests on disk, the Kubernetes API) and the model, and is the one place that
// knows what an API object means: it fills in the defaults that an API server would, and checks what an API server
// would refuse, since a hand-written object went through neither. Every function here is pure and takes any object,
// however incomplete.
//
// Invariant: what is wrong is never guessed at. The part that is wrong is left out if the rest then serves fewer
// addresses or clients than was written, and the whole object if it could serve more.
package convert
