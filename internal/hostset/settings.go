package hostset

import "time"

// Settings is what the operator asks for. The zero value leaves everything as it is.
type Settings struct {
	OOMScoreAdj int  // -1000 (never ended when memory runs out) to 1000 (first)
	SetOOM      bool // else OOMScoreAdj says nothing
	Conntrack   Conntrack
}

// Conntrack is how the kernel is to track connections. Times are whole seconds to the kernel; 0 leaves a time as it is.
type Conntrack struct {
	MaxPerCore int // connections at once for each processor of the machine; 0 leaves the limit as it is, whatever Min says
	Min        int // connections at once, however few processors there are

	TCPEstablished time.Duration
	TCPCloseWait   time.Duration
	UDP            time.Duration
	UDPStream      time.Duration

	BeLiberal bool // take TCP packets out of window as valid; false leaves it as it is
}

// Setting names one thing to set: a key of sysctl(8), or OOMScoreAdj.
type Setting string

// The settings, in the order in which they are made.
const (
	MaxConnections Setting = "net.netfilter.nf_conntrack_max" // of the whole machine; other network namespaces only read it
	Buckets        Setting = "net.netfilter.nf_conntrack_buckets"
	TCPEstablished Setting = "net.netfilter.nf_conntrack_tcp_timeout_established"
	TCPCloseWait   Setting = "net.netfilter.nf_conntrack_tcp_timeout_close_wait"
	UDP            Setting = "net.netfilter.nf_conntrack_udp_timeout"
	UDPStream      Setting = "net.netfilter.nf_conntrack_udp_timeout_stream"
	BeLiberal      Setting = "net.netfilter.nf_conntrack_tcp_be_liberal"
	OOMScoreAdj    Setting = "oom_score_adj" // of this process
)

// maxScaled is how far processors alone raise the limit of connections, so that a machine with many does not spend
// memory on a table that it may never need.
const maxScaled = 1 << 20

// perBucket is how many connections may share a bucket before looking one up becomes slow.
const perBucket = 4

// want is the value that a setting is to have.
type want struct {
	setting Setting
	value   int
	atLeast bool // more is as good
}

// wants lists what is asked for on a machine with so many processors.
func (s Settings) wants(cpus int) (all []want) {
	if limit := s.Conntrack.limit(cpus); limit > 0 {
		all = append(all, want{MaxConnections, limit, true}, want{Buckets, limit / perBucket, true})
	}
	c := s.Conntrack
	all = appendTime(all, TCPEstablished, c.TCPEstablished)
	all = appendTime(all, TCPCloseWait, c.TCPCloseWait)
	all = appendTime(all, UDP, c.UDP)
	all = appendTime(all, UDPStream, c.UDPStream)
	if c.BeLiberal {
		all = append(all, want{setting: BeLiberal, value: 1})
	}
	if s.SetOOM {
		all = append(all, want{setting: OOMScoreAdj, value: s.OOMScoreAdj})
	}
	return all
}

// limit is how many connections are to be tracked at once; 0 if that is not asked for.
func (c Conntrack) limit(cpus int) int {
	if c.MaxPerCore <= 0 {
		return 0
	}
	return max(min(c.MaxPerCore*cpus, maxScaled), c.Min)
}

// appendTime adds a timeout in the kernel's seconds. Less than one is one: to the kernel 0 is "forget at once".
func appendTime(all []want, s Setting, d time.Duration) []want {
	if d <= 0 {
		return all
	}
	return append(all, want{setting: s, value: max(int(d/time.Second), 1)})
}

// met reports whether a value is as good as the one that is wanted.
func (w want) met(have int) bool {
	unlimited := w.setting == MaxConnections && have == 0
	return have == w.value || w.atLeast && have > w.value || unlimited
}
