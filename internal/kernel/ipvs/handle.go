package ipvs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/cloudflare/ipvs"
)

// ErrAbsent occurs when the kernel has no virtual servers and cannot load them: the module ip_vs is missing.
var ErrAbsent = errors.New("this kernel has no virtual servers (module ip_vs)")

// Handle reaches the virtual servers of one network namespace. It is safe for concurrent use. Close it when done.
type Handle struct {
	client ipvs.Client
}

// Open returns a handle for the network namespace of the calling thread. The kernel loads ip_vs if it can.
func Open() (*Handle, error) {
	client, err := ipvs.New()
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the netlink socket of ip_vs: %w", err)
	}
	return &Handle{client: client}, nil
}

// Close closes the handle's socket.
func (h *Handle) Close() error {
	if c, ok := h.client.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Version is that of ip_vs, such as 1.2.1.
func (h *Handle) Version() (string, error) {
	info, err := h.client.Info()
	if err != nil {
		return "", fmt.Errorf("read the version of ip_vs: %w", err)
	}
	return fmt.Sprintf("%d.%d.%d", info.Version[0], info.Version[1], info.Version[2]), nil
}

// Servers lists all virtual servers, whoever made them.
func (h *Handle) Servers() ([]FoundServer, error) {
	all, err := h.client.Services()
	if err != nil && !errors.Is(err, os.ErrNotExist) { // there are none
		return nil, fmt.Errorf("list virtual servers: %w", err)
	}
	out := make([]FoundServer, len(all))
	for i, s := range all {
		out[i] = found(s)
	}
	return out, nil
}

// Add makes a virtual server without destinations. The error is syscall.EEXIST if there is one of the name, and ENOENT if
// the kernel has no such scheduler.
func (h *Handle) Add(s Server) error {
	return wrap("add virtual server", s.Name, h.client.CreateService(s.service()))
}

// Set changes all of a virtual server but its name. Its destinations and connections stay.
func (h *Handle) Set(s Server) error {
	return wrap("change virtual server", s.Name, h.client.UpdateService(s.service()))
}

// Delete removes a virtual server with its destinations.
func (h *Handle) Delete(n Name) error {
	return wrap("delete virtual server", n, h.client.RemoveService(n.service()))
}

// Destinations lists those of a virtual server.
func (h *Handle) Destinations(n Name) ([]FoundDestination, error) {
	all, err := h.client.Destinations(n.service())
	if err != nil && !errors.Is(err, os.ErrNotExist) { // there are none
		return nil, wrap("list destinations of virtual server", n, err)
	}
	out := make([]FoundDestination, len(all))
	for i, d := range all {
		out[i] = foundDestination(d)
	}
	return out, nil
}

// AddDestination gives a virtual server one more.
func (h *Handle) AddDestination(n Name, d Destination) error {
	return wrapDestination("add", n, d, h.client.CreateDestination(n.service(), d.destination()))
}

// SetDestination changes the weight of a destination. Its connections stay.
func (h *Handle) SetDestination(n Name, d Destination) error {
	return wrapDestination("change", n, d, h.client.UpdateDestination(n.service(), d.destination()))
}

// DeleteDestination takes a destination from a virtual server. Connections that it has are lost: their next packet is
// dropped, and with the setting expire_nodest_conn they are forgotten then.
func (h *Handle) DeleteDestination(n Name, d Destination) error {
	return wrapDestination("delete", n, d, h.client.RemoveDestination(n.service(), d.destination()))
}

// Timeouts are how long a connection is kept after its last packet, in whole seconds.
type Timeouts struct {
	TCP    time.Duration // while it is open
	TCPFin time.Duration // while it ends
	UDP    time.Duration
}

// seconds are whole ones, as many as there are room for, and one at least of any time at all: to the kernel, 0 is none.
func seconds(d time.Duration) uint32 {
	whole := d / time.Second
	if d%time.Second > 0 {
		whole++
	}
	return uint32(min(whole, math.MaxUint32))
}

// SetTimeouts changes those that are not 0. The kernel refuses those that are longer than some months.
func (h *Handle) SetTimeouts(t Timeouts) error {
	err := h.client.SetConfig(ipvs.Config{TCPTimeout: seconds(t.TCP), TCPFinTimeout: seconds(t.TCPFin), UDPTimeout: seconds(t.UDP)})
	if err != nil {
		return fmt.Errorf("set timeouts of ip_vs to %s (TCP), %s (TCP after FIN) and %s (UDP): %w", t.TCP, t.TCPFin, t.UDP, err)
	}
	return nil
}

// Timeouts reads them.
func (h *Handle) Timeouts() (Timeouts, error) {
	c, err := h.client.Config()
	if err != nil {
		return Timeouts{}, fmt.Errorf("read timeouts of ip_vs: %w", err)
	}
	read := func(n uint32) time.Duration { return time.Duration(n) * time.Second }
	return Timeouts{TCP: read(c.TCPTimeout), TCPFin: read(c.TCPFinTimeout), UDP: read(c.UDPTimeout)}, nil
}

func wrap(op string, n Name, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, n, err)
}

func wrapDestination(op string, n Name, d Destination, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s destination %s of virtual server %s: %w", op, d.AddrPort, n, err)
}
