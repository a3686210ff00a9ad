package kube

import "time"

// State is how a Client stands with the API server.
type State struct {
	// Synced is that all is known that is waited for: the first Change is under way or was told.
	Synced bool
	// Connected is that every kind that is served and allowed is being watched.
	Connected bool
	// Since is when Connected last changed.
	Since time.Time
	// Error is the last one of a kind that is not being watched, in the words of the API server or of the network.
	Error string
	// Kinds are in the order in which they are watched.
	Kinds []KindState
}

// KindState is how one kind of objects stands.
type KindState struct {
	Kind string // such as "EndpointSlice"
	// Synced is that all objects were listed once.
	Synced bool
	// Connected is that changes come as they happen. Without it, what is known stays as it was.
	Connected bool
	// Since is when Connected last changed.
	Since time.Time
	// Error is why it is not Connected, or was not the last time.
	Error string
	// Objects is how many there are in the model.
	Objects int
}
