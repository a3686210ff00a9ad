package userspace

import (
	"fmt"

	"sluice/internal/relay"
)

// Options are what is this mode's own to choose. The zero value is not useful; see [DefaultOptions].
type Options struct {
	// Ports are those of the node that the proxy may listen at.
	Ports PortRange
	// Before are the ports at which the process before this one listened for lists. They keep them, for the sockets come
	// from one process to the next, and the kernel's rules lead there.
	Before map[relay.Key]uint16
}

// PortRange is a range of ports, both ends included.
type PortRange struct{ First, Last uint16 }

// DefaultOptions keep clear of the node ports (30000 to 32767), and of the ports that the kernel gives to connections of
// this node by itself (from 32768).
func DefaultOptions() Options { return Options{Ports: PortRange{10000, 29999}} }

// String is the range as a flag has it.
func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

func (r PortRange) size() int { return int(r.Last) - int(r.First) + 1 }

func (r PortRange) contains(port uint16) bool { return r.First <= port && port <= r.Last }
