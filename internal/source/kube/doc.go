// Package kube reads Services, EndpointSlices, one Node and ServiceCIDRs from a Kubernetes API server, and follows
// them. It also writes Events.
//
// Objects are asked for as kube-proxy asks for them, by the same selectors. Each becomes a value of package model, by
// package convert, as soon as it is decoded, and is dropped: nothing is kept but the model and, for objects that have
// some, problems and trigger times.
//
// Lists and watches are those of client-go's reflector: a list as a stream where the server has it and in pages
// where not, a watch that goes on where it ended, and a new list where the server has forgotten that point. Whatever
// breaks, a list replaces all that is known of its kind; what is not in it is told as deleted. There is no periodic
// resync, since a receiver that compares levels has nothing to do when nothing changed.
//
// Invariant: the Deltas that Watch has given, applied one after another, are what the server had at some moment after
// the last list, and in the end what it has.
package kube
