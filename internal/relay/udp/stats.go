package udp

import (
	"errors"
	"sync/atomic"
	"syscall"

	"sluice/internal/relay/count"
)

// Drop is why a datagram was not passed on.
type Drop uint8

// The reasons.
const (
	// Limit: there are as many sessions as there may be, and all that could go for this one are streams.
	Limit Drop = iota
	// Backlog: too much waits for sessions to be opened.
	Backlog
	// Refused: its session could not be opened.
	Refused
	// Busy: the socket had no room for it.
	Busy
	// Malformed: it did not fit, or it is not known where from or where to it was sent.
	Malformed
	// Unsendable: the kernel took it for none that can be sent, such as one too long with its PROXY protocol header.
	Unsendable

	Drops // how many there are
)

// String is the reason in words, for logs and labels.
func (d Drop) String() string {
	return [...]string{"limit", "backlog", "refused", "busy", "malformed", "unsendable"}[d]
}

// Ending is why a session ended.
type Ending uint8

// The reasons.
const (
	// Idle: it was silent for too long.
	Idle Ending = iota
	// Displaced: it went for a new one, at the limit.
	Displaced
	// EndpointRefused: nobody listens there.
	EndpointRefused
	// EndpointGone: it is not in the list any more, and does not drain.
	EndpointGone
	// NotOpened: the reasons are in [Listener.Counts].
	NotOpened
	// Closed: with its Listener.
	Closed

	Endings // how many there are
)

// String is the reason in words, for logs and labels.
func (e Ending) String() string {
	return [...]string{"idle", "displaced", "endpoint refused", "endpoint gone", "not opened", "closed"}[e]
}

// Stats are numbers of datagrams and sessions at one moment, beside those of [Listener.Counts].
type Stats struct {
	In, Out uint64 // datagrams to endpoints, and to clients
	Dropped [Drops]uint64
	Ended   [Endings]uint64
}

// counters count for a Listener, and for what it is a part of.
type counters struct {
	parent  *counters
	in, out atomic.Uint64
	dropped [Drops]atomic.Uint64
	ended   [Endings]atomic.Uint64
}

func (c *counters) passIn() {
	for ; c != nil; c = c.parent {
		c.in.Add(1)
	}
}

func (c *counters) passOut() {
	for ; c != nil; c = c.parent {
		c.out.Add(1)
	}
}

func (c *counters) drop(d Drop) { c.dropAll(d, 1) }

func (c *counters) dropAll(d Drop, n int) {
	for ; c != nil; c = c.parent {
		c.dropped[d].Add(uint64(n))
	}
}

func (c *counters) end(why Ending) {
	for ; c != nil; c = c.parent {
		c.ended[why].Add(1)
	}
}

func (c *counters) stats() Stats {
	s := Stats{In: c.in.Load(), Out: c.out.Load()}
	for i := range s.Dropped {
		s.Dropped[i] = c.dropped[i].Load()
	}
	for i := range s.Ended {
		s.Ended[i] = c.ended[i].Load()
	}
	return s
}

// Counts are the sessions, as connections, and their bytes.
func (l *Listener) Counts() count.Counts { return l.count.Counts() }

// Stats are the numbers now.
func (l *Listener) Stats() Stats { return l.stats.stats() }

// Stats are the numbers of all Listeners that ever were, together.
func (e *Engine) Stats() Stats { return e.stats.stats() }

// refuses reports that an endpoint's machine, or one on the way, has answered an earlier datagram with an error of ICMP.
func refuses(err error) bool {
	for _, e := range []error{
		syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENOPROTOOPT, syscall.EACCES, syscall.EHOSTDOWN, syscall.ENONET,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// ofAnother reports that an error of ICMP may be about one datagram, sent before, and not about the endpoint: it was too long
// for a link on the way, say, which the kernel takes into account from now on.
func ofAnother(err error) bool {
	for _, e := range []error{syscall.EMSGSIZE, syscall.EPROTO, syscall.EOPNOTSUPP} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// dropOf is the reason of an error of sending.
func dropOf(err error) Drop {
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM) {
		return Busy
	}
	return Unsendable
}
