package plan

import "sluice/internal/model"

// Client is the kind of a client, as policies see it.
type Client uint8

// The kinds of clients. Whoever is a pod by the Detector is nothing else.
const (
	ClientPod     Client = iota
	ClientHost           // a process of this node
	ClientOutside        // anything else
)

// Clients lists all kinds.
var Clients = [...]Client{ClientPod, ClientHost, ClientOutside}

// String is the kind in words.
func (c Client) String() string { return [...]string{"pod", "this node", "outside client"}[c] }

// Action is what happens to a new connection.
type Action uint8

// The actions.
const (
	// Unhandled: it is none of our frontends, so routing and the host take it.
	Unhandled Action = iota
	// Forward sends it to an endpoint.
	Forward
	// Reject refuses it at once.
	Reject
	// Drop says nothing.
	Drop
)

// String is the action in lower case, as trace prints it.
func (a Action) String() string { return [...]string{"unhandled", "forward", "reject", "drop"}[a] }

// List names one of a Port's lists of endpoints.
type List uint8

// The lists.
const (
	ListNone List = iota
	ListCluster
	ListLocal
)

// Route is what happens to one kind of client.
type Route struct {
	Action Action
	List   List // for Forward
	// Masquerade rewrites the source to the node's. A client that is its own endpoint is masqueraded anyhow.
	Masquerade bool
}

// Access is the route of every kind of client, by Client.
type Access [len(Clients)]Route

// internalAccess is for a ClusterIP: its own policy for all; who is not known to be a pod is masqueraded, since
// replies must come back through this node.
func internalAccess(policy model.TrafficPolicy, n *Node, f model.Family, s selection) Access {
	r := s.route(policy)
	pod, other := r, r
	pod.Masquerade = n.MasqueradeAll
	other.Masquerade = n.MasqueradeAll || n.Detect[f].Implemented()
	return Access{ClientPod: pod, ClientHost: other, ClientOutside: other}
}

// externalAccess is for the other frontends. With policy Local, clients inside are not held to this node's endpoints:
// the policy serves to keep outside clients' addresses, which theirs are not.
func externalAccess(policy model.TrafficPolicy, s selection) Access {
	all := s.route(model.PolicyCluster)
	masqueraded := all
	masqueraded.Masquerade = true
	if policy == model.PolicyCluster {
		return Access{ClientPod: masqueraded, ClientHost: masqueraded, ClientOutside: masqueraded}
	}
	return Access{ClientPod: all, ClientHost: masqueraded, ClientOutside: s.route(model.PolicyLocal)}
}

// route leads to the endpoints that a policy allows. Without any it refuses: loudly where the Service has none at
// all, silently where other nodes have some, so that a load balancer goes there.
func (s selection) route(policy model.TrafficPolicy) Route {
	list, endpoints := ListCluster, s.cluster
	if policy == model.PolicyLocal {
		list, endpoints = ListLocal, s.local
	}
	switch {
	case len(endpoints) > 0:
		return Route{Action: Forward, List: list}
	case s.any:
		return Route{Action: Drop}
	}
	return Route{Action: Reject}
}
