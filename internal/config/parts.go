package config

import "time"

// Client is how the API server is reached. It is comparable.
type Client struct {
	// Kubeconfig is a path; empty: the service account of the pod.
	Kubeconfig string
	// Master is the URL of the API server, and wins over the kubeconfig's. Only a flag says it.
	Master string
	// ContentType is that of what is sent, AcceptContentTypes of what is taken; empty: as what is sent.
	ContentType, AcceptContentTypes string
	// QPS is how many requests a second there may be for long, less than 0 any number; Burst how many at once.
	QPS   float32
	Burst int
}

// Serve is where the daemon answers. It is comparable.
type Serve struct {
	// Health and Metrics are like "0.0.0.0:10256", and empty where nobody is to be answered.
	Health, Metrics string
	// HardFail ends the daemon if it cannot listen at one of them.
	HardFail bool
	// Profiling serves /debug/pprof beside the metrics.
	Profiling bool
}

// Host is what the machine is set to. It is comparable.
type Host struct {
	// OOMScoreAdj is the daemon's own, −1000 to 1000.
	OOMScoreAdj int
	Conntrack   Conntrack
}

// Conntrack is what the kernel's connection tracking is set to. It is comparable.
type Conntrack struct {
	// MaxPerCore is how many entries there may be for each CPU, 0 to leave the limit and disregard Min; Min is how
	// many there may be at least.
	MaxPerCore, Min int
	// What an idle connection in such a state is remembered for; 0: leave it.
	TCPEstablished, TCPCloseWait, UDP, UDPStream time.Duration
	// BeLiberal takes TCP packets outside the window for valid.
	BeLiberal bool
}

// Log is how the daemon tells what it does. It is comparable.
type Log struct {
	// Format is FormatText or FormatJSON.
	Format string
	// Verbosity is kube-proxy's --v: 0 is the least.
	Verbosity int
}

// The formats of the log.
const (
	FormatText = "text"
	FormatJSON = "json"
)
