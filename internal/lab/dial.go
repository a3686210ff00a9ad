package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"sluice/internal/kernel/connect"
	"sluice/internal/model"
	"sluice/internal/plan"
)

// Inside one machine every answer comes at once, unless the machine is busy.
const (
	defaultTimeout    = 3 * time.Second
	defaultTimeoutTCP = 10 * time.Second
)

// Silence is how long to wait for an answer where none is to come. It leaves TCP the time to try again, should the answer
// be lost.
func Silence(p model.Protocol) time.Duration {
	if p == model.TCP {
		return 1500 * time.Millisecond
	}
	return 500 * time.Millisecond
}

// Dial is one new connection.
type Dial struct {
	// From is the client's address; the zero value leaves it to the host.
	From netip.Addr
	// FromPort is the client's port; 0 leaves it to the host. The same one again makes the packet look like one more of
	// the same flow.
	FromPort uint16
	To       netip.AddrPort
	Protocol model.Protocol
	// Timeout is how long silence lasts until it counts as a drop; 0 is so long that an answer comes on a busy machine,
	// too. Where none is to come, see [Silence].
	Timeout time.Duration
}

// Outcome is what became of a connection.
type Outcome struct {
	// Action is [plan.Unhandled] where the network refused to take the packet back from the node.
	Action plan.Action
	// Endpoint is where the connection arrived, and Peer whom the server there saw as its client; for [plan.Forward].
	Endpoint, Peer netip.AddrPort
	// Err is what the client met; for all but [plan.Forward].
	Err error
}

// String is the outcome in words.
func (o Outcome) String() string {
	if o.Action == plan.Forward {
		return "forward to " + greeting(o.Endpoint, o.Peer)
	}
	return o.Action.String()
}

// Dial opens a connection (for UDP and SCTP: sends one datagram or INIT), waits for the answer of a [Server] and closes
// the connection. The error is about the lab itself: a failing connection is an Outcome.
func (h *Host) Dial(d Dial) (Outcome, error) {
	if d.Protocol == model.SCTP {
		defer h.sctp.enter(d.To.Addr())()
	}
	var o Outcome
	err := h.ns.Do(func() (err error) {
		o, err = d.run()
		return err
	})
	if err != nil {
		err = fmt.Errorf("dial %s/%s from %s: %w", d.To, d.Protocol, h.Name, err)
	}
	return o, err
}

// run is for a thread in the client's namespace.
func (d Dial) run() (Outcome, error) {
	if d.Protocol != model.TCP {
		return d.datagram()
	}
	c, o, err := d.connect()
	if c != nil {
		err = c.Close()
	}
	return o, err
}

func (d Dial) timeout() time.Duration {
	switch {
	case d.Timeout != 0:
		return d.Timeout
	case d.Protocol == model.TCP:
		return defaultTimeoutTCP
	}
	return defaultTimeout
}

// from is where to bind to; not valid where there is no need.
func (d Dial) from() netip.AddrPort {
	addr := d.From
	if !addr.IsValid() && d.FromPort != 0 {
		addr = netip.IPv4Unspecified()
		if d.To.Addr().Is6() {
			addr = netip.IPv6Unspecified()
		}
	}
	return netip.AddrPortFrom(addr, d.FromPort)
}

// Conn is an open TCP connection to a [Server].
type Conn struct {
	tcp    *net.TCPConn
	reader *bufio.Reader
}

// Connect opens a TCP connection and keeps it open. Conn is nil unless the Outcome is [plan.Forward].
func (h *Host) Connect(d Dial) (*Conn, Outcome, error) {
	var c *Conn
	var o Outcome
	err := h.ns.Do(func() (err error) {
		c, o, err = d.connect()
		return err
	})
	return c, o, err
}

func (d Dial) connect() (*Conn, Outcome, error) {
	conn, err := connect.TCP(d.from(), d.To, d.timeout())
	if err != nil {
		o, err := failure(err)
		return nil, o, err
	}
	c := &Conn{tcp: conn, reader: bufio.NewReader(conn)}
	o, err := c.greeted(d.timeout())
	if err != nil || o.Action != plan.Forward {
		return nil, o, errors.Join(err, c.Close())
	}
	return c, o, nil
}

func (c *Conn) greeted(timeout time.Duration) (Outcome, error) {
	if err := c.tcp.SetDeadline(time.Now().Add(timeout)); err != nil {
		return Outcome{}, err
	}
	line, err := c.reader.ReadString('\n')
	if errors.Is(err, io.EOF) { // which alone does not say whose
		err = &net.OpError{Op: "read", Net: "tcp", Source: c.tcp.LocalAddr(), Addr: c.tcp.RemoteAddr(), Err: err}
	}
	if err != nil {
		return failure(err)
	}
	return parseGreeting(line)
}

// Echo sends a line over the connection and waits for it to come back: an error says that the connection is broken.
func (c *Conn) Echo(line string) error {
	if err := c.tcp.SetDeadline(time.Now().Add(defaultTimeoutTCP)); err != nil {
		return err
	}
	if _, err := io.WriteString(c.tcp, line+"\n"); err != nil {
		return err
	}
	back, err := c.reader.ReadString('\n')
	if err == nil && back != line+"\n" {
		err = fmt.Errorf("sent %q, got %q", line, back)
	}
	return err
}

// Close resets the connection, so that neither end nor the connection tracking of the node has to remember it: load
// tests would run out of ports otherwise.
func (c *Conn) Close() error {
	return errors.Join(c.tcp.SetLinger(0), c.tcp.Close())
}

// failure reads an error of the kernel as the fate of a packet.
func failure(err error) (Outcome, error) {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	var timeout net.Error
	switch {
	case is(syscall.ECONNREFUSED, syscall.ECONNRESET, io.EOF):
		return Outcome{Action: plan.Reject, Err: err}, nil
	case errors.As(err, &timeout) && timeout.Timeout():
		return Outcome{Action: plan.Drop, Err: err}, nil
	case is(syscall.EHOSTUNREACH, syscall.EACCES, syscall.ENETUNREACH): // a "prohibited" is EACCES in IPv6 only
		return Outcome{Action: plan.Unhandled, Err: err}, nil
	}
	return Outcome{}, err
}

// greeting is what a server says to a client.
func greeting(endpoint, peer netip.AddrPort) string {
	return endpoint.String() + " saw " + peer.String()
}

func parseGreeting(text string) (Outcome, error) {
	endpoint, peer, _ := strings.Cut(strings.TrimSpace(text), " saw ")
	o := Outcome{Action: plan.Forward}
	var err1, err2 error
	o.Endpoint, err1 = netip.ParseAddrPort(endpoint)
	o.Peer, err2 = netip.ParseAddrPort(peer)
	if err := errors.Join(err1, err2); err != nil {
		return Outcome{}, fmt.Errorf("the answer %q is not that of a lab server: %w", text, err)
	}
	return o, nil
}
