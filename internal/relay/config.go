package relay

import (
	"log/slog"
	"time"

	"sluice/internal/kernel/splice"
)

// What a Server takes at most, unless it is told more.
const (
	maxConnections = 65536
	maxSessions    = 16384
	maxPipes       = 256
)

// Config is what a Server needs. Its zero value is a Server that works.
type Config struct {
	Log *slog.Logger // nil: none
	// In runs f where sockets are to be made, such as in a network namespace, and returns its error. Nil: here.
	In func(f func() error) error
	// Inherited are listening sockets of the process before this one, taken in place of new ones for a Target of the
	// same Key and Listen. The Server owns them; [Server.DropInherited] closes what none takes.
	Inherited []Socket
	// Drain is how long what is being relayed may go on once its Service is gone. 0: until it ends by itself.
	Drain time.Duration

	// Connections bounds the open TCP connections, Sessions those of UDP. 0: 65536 and 16384, or fewer if they would take
	// more than half and an eighth of the files that the process may have open.
	Connections, Sessions int
	// DialTimeout bounds one attempt to reach an endpoint, DialTotal all of them for one connection. 0: 5 s and 20 s.
	DialTimeout, DialTotal time.Duration
	// UDPIdle is how long a UDP session lives without datagrams. 0: as long as connection tracking keeps one.
	UDPIdle time.Duration

	pipes int // of TCP
}

// defaults says what c does not. A connection takes two open files, a pipe too, and a session one: together not more
// than 11/16 of all. The rest is for listeners, and for the rest of the program.
func (c *Config) defaults() error {
	files, err := splice.OpenFiles()
	if err != nil {
		return err
	}
	if c.Connections == 0 {
		c.Connections = min(maxConnections, max(1, files/4))
	}
	if c.Sessions == 0 {
		c.Sessions = min(maxSessions, max(1, files/8))
	}
	c.pipes = min(maxPipes, max(1, files/32))
	if c.In == nil {
		c.In = func(f func() error) error { return f() }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}
