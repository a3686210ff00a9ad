package relay

import (
	"log/slog"
	"time"
)

// Config is what a Server needs. Its zero value is a Server that works.
type Config struct {
	Log *slog.Logger // nil: none
	// In runs f where sockets are to be made, such as in a network namespace, and returns its error. Nil: here.
	In func(f func() error) error
	// Inherited are listening sockets of the process before this one, taken in place of new ones for a Target of the
	// same Key and Listen. The Server owns them; what the first Set does not take is closed then.
	Inherited []Socket
	// Drain is how long what is being relayed may go on once its Target is removed. 0: until it ends by itself.
	Drain time.Duration

	// Connections bounds the open TCP connections, Sessions those of UDP; 0: as many as the limit of open files suggests.
	Connections, Sessions int
	// DialTimeout bounds one attempt to reach an endpoint, DialTotal all of them for one connection. 0: 5 s and 20 s.
	DialTimeout, DialTotal time.Duration
	// UDPIdle is how long a UDP session lives without datagrams. 0: as long as connection tracking keeps one.
	UDPIdle time.Duration
}
