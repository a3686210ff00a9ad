package count

import (
	"sync/atomic"
	"time"
)

// Reason is why a connection or session was refused.
type Reason uint8

// The reasons.
const (
	// Limit: there are as many as there may be, in all or of this Target.
	Limit Reason = iota
	// NoEndpoint: the Target has none.
	NoEndpoint
	// Unreachable: no endpoint could be reached.
	Unreachable
	// NotRedirected: the client connected to the port of the proxy itself, which is nobody's Service.
	NotRedirected
	// Resources: this machine lacks something, such as files or memory.
	Resources
	// Loop: an endpoint leads back to the Target, so that the client is the proxy itself.
	Loop

	Reasons // how many there are
)

// String is the reason in words, for logs and labels.
func (r Reason) String() string {
	return [...]string{"limit", "no endpoint", "unreachable", "not redirected", "resources", "loop"}[r]
}

// Counts are the numbers of a Counter at one moment. A UDP session counts as a connection.
type Counts struct {
	Accepted     uint64 // connections that were accepted, those that were refused then among them
	Open         int64
	Refused      [Reasons]uint64
	DialFailures uint64 // attempts to reach an endpoint that failed
	// In are bytes from clients to endpoints, Out those back.
	In, Out uint64
	// Copied are those of In and Out that went through memory of this process, and not by splice(2).
	Copied uint64
	// Ended are connections that were relayed and have ended, and Duration the sum of the time that they were open.
	Ended    uint64
	Duration time.Duration
}

// Counter counts. It is not copied once used.
type Counter struct {
	parent *Counter

	accepted, dialFailures, in, out, copied, ended atomic.Uint64

	open     atomic.Int64
	duration atomic.Int64
	refused  [Reasons]atomic.Uint64
}

// New makes a Counter that adds to parent too, unless that is nil.
func New(parent *Counter) *Counter { return &Counter{parent: parent} }

// Counts are the numbers now. Each is right by itself; together they are of about one moment.
func (c *Counter) Counts() Counts {
	n := Counts{
		Accepted: c.accepted.Load(), Open: c.open.Load(), DialFailures: c.dialFailures.Load(),
		In: c.in.Load(), Out: c.out.Load(), Copied: c.copied.Load(),
		Ended: c.ended.Load(), Duration: time.Duration(c.duration.Load()),
	}
	for r := range n.Refused {
		n.Refused[r] = c.refused[r].Load()
	}
	return n
}

// Open is how many are open.
func (c *Counter) Open() int64 { return c.open.Load() }

// Accept counts a connection that was accepted.
func (c *Counter) Accept() {
	for ; c != nil; c = c.parent {
		c.accepted.Add(1)
	}
}

// Begin counts a connection as open until [Counter.End].
func (c *Counter) Begin() {
	for ; c != nil; c = c.parent {
		c.open.Add(1)
	}
}

// End takes back a Begin.
func (c *Counter) End() {
	for ; c != nil; c = c.parent {
		c.open.Add(-1)
	}
}

// Refuse counts a connection that was refused.
func (c *Counter) Refuse(r Reason) {
	for ; c != nil; c = c.parent {
		c.refused[r].Add(1)
	}
}

// DialFailed counts an endpoint that could not be reached.
func (c *Counter) DialFailed() {
	for ; c != nil; c = c.parent {
		c.dialFailures.Add(1)
	}
}

// In counts n bytes from a client to its endpoint, and whether they were copied to memory of this process.
func (c *Counter) In(n int, copied bool) {
	for ; c != nil; c = c.parent {
		c.in.Add(uint64(n))
		c.copy(n, copied)
	}
}

// Out is In for bytes from an endpoint to its client.
func (c *Counter) Out(n int, copied bool) {
	for ; c != nil; c = c.parent {
		c.out.Add(uint64(n))
		c.copy(n, copied)
	}
}

func (c *Counter) copy(n int, copied bool) {
	if copied {
		c.copied.Add(uint64(n))
	}
}

// Ended counts a connection that was relayed for d and has ended.
func (c *Counter) Ended(d time.Duration) {
	for ; c != nil; c = c.parent {
		c.ended.Add(1)
		c.duration.Add(int64(d))
	}
}
