// Package differential gives Sluice and upstream's kube-proxy the same objects, in the same mode, and compares what
// clients meet: hundreds of random Services, random edits of them, and real packets from every kind of client to every
// address.
//
// There is one cluster for each mode. In it are three nodes: "sluice", "upstream", and "elsewhere", which has no proxy.
// Endpoints on one of the first two have a twin on the other, so that both proxies see the same picture, and answers are
// told as each node sees them: an endpoint is "here", "there" or "elsewhere".
//
// Invariant: what differs is an entry of the list of intended differences, which docs/differences.md has, or the test
// fails with the objects, the client, the address and both answers.
package differential
