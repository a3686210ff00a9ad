package status

import "time"

// Report is what a daemon does at one moment.
type Report struct {
	Mode  string    `json:"mode"`
	Node  string    `json:"node,omitempty"`
	Since time.Time `json:"since"` // when the daemon started
	// Healthy is set while changes reach the kernel in time.
	Healthy bool `json:"healthy"`
	// Applied is absent before the first time that the kernel was brought up to date.
	Applied *Applied `json:"applied,omitempty"`
	// API is absent where the objects come from no API server.
	API *API `json:"api,omitempty"`
	// Problems are what is wrong with the objects and with the node, a line each.
	Problems []string `json:"problems,omitempty"`
	Ports    []Port   `json:"servicePorts"`
}

// Unread reports whether the objects have not all been read from the API server yet, so that nothing was written.
func (r Report) Unread() bool { return r.API != nil && !r.API.Synced }

// API is how the daemon stands with the API server. While it is not Connected, everything goes on as it was.
type API struct {
	Server    string    `json:"server"`
	Synced    bool      `json:"synced"`    // all objects were read once
	Connected bool      `json:"connected"` // changes come as they happen
	Since     time.Time `json:"since"`     // when Connected last changed
	Error     string    `json:"error,omitempty"`
	Kinds     []Kind    `json:"kinds"`
}

// Kind is how one kind of objects stands.
type Kind struct {
	Kind      string    `json:"kind"`
	Synced    bool      `json:"synced"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"`
	Error     string    `json:"error,omitempty"`
	Objects   int       `json:"objects"`
}

// Applied is how bringing the kernel up to date went so far.
type Applied struct {
	Last        time.Time `json:"last"`
	LastSeconds float64   `json:"lastSeconds"` // how long it took
	Times       int       `json:"times"`
	Failures    int       `json:"failures"` // the last ones that failed, in a row
	Written     int       `json:"written"`  // objects
	Restored    int       `json:"restored"` // objects that somebody else had changed
}

// Port is how far a Service port is in the kernel, in one family.
type Port struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Port      string `json:"port,omitempty"`   // its name
	Number    uint16 `json:"number,omitempty"` // at its cluster IP
	Protocol  string `json:"protocol"`
	Family    string `json:"family"`

	State string    `json:"state"`
	Since time.Time `json:"since"`
	Error string    `json:"error,omitempty"` // in the words of who refuses it

	Frontends int `json:"frontends"` // addresses at which it answers
	Endpoints int `json:"endpoints"` // that connections go to
	// Proxy is where the proxy of mode userspace listens for the Service port: for connections to all its endpoints, and
	// to those of this node. Absent: nothing leads there.
	Proxy [2]uint16 `json:"proxyPorts,omitzero"`
	// Connections is how many there have been since the counter was made. It is absent where the mode counts none.
	Connections *uint64 `json:"connections,omitempty"`
	// Open is how many connections and sessions of UDP the proxy of mode userspace has open. It is absent in other modes.
	Open *int64 `json:"openConnections,omitempty"`
}
