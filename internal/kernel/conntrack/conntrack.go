package conntrack

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ti-mo/conntrack"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"

	"sluice/internal/kernel/nfnl"
)

// ErrInterrupted occurs when the table changed during each of several attempts to list it; the flows listed last come
// with it, and some may be missing.
var ErrInterrupted = errors.New("the connection tracking table kept changing while it was read")

// attempts is how often an interrupted dump is read again. A busy table may interrupt all of them.
const attempts = 5

// Flow is an entry of the connection tracking table. Source and destination of the replies differ from those of the
// original direction, turned round, where addresses are translated.
type Flow struct {
	Protocol  uint8          // such as 17 for UDP
	Source    netip.AddrPort // of the first packet, as it was sent
	Dest      netip.AddrPort // of the first packet, as it was sent: a Service's address, say
	ReplyFrom netip.AddrPort // who answers: the endpoint, say
	ReplyTo   netip.AddrPort // whom the answer is sent to
	Mark      uint32
	Zone      uint16
	Unreplied bool // no answer has been seen
}

// String returns the flow in the order and words of conntrack -L.
func (f Flow) String() string {
	state := ""
	if f.Unreplied {
		state = " [UNREPLIED]"
	}
	return fmt.Sprintf("protocol %d src=%s dst=%s%s src=%s dst=%s mark=%d",
		f.Protocol, f.Source, f.Dest, state, f.ReplyFrom, f.ReplyTo, f.Mark)
}

// Conn reaches the connection tracking table of one network namespace. It is safe for use by one goroutine at a time.
// Close it when done.
type Conn struct {
	conn   *conntrack.Conn
	single *nfnl.Conn // for single flows
}

// Open returns a Conn for the network namespace of the calling thread.
func Open() (*Conn, error) {
	conn, err := conntrack.Dial(nil)
	if err != nil {
		return nil, fmt.Errorf("open connection tracking: %w", err)
	}
	single, err := nfnl.Open()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open connection tracking: %w", err), conn.Close())
	}
	return &Conn{conn, single}, nil
}

// Close closes the sockets.
func (c *Conn) Close() error { return errors.Join(c.conn.Close(), c.single.Close()) }

// UDP returns the UDP flows of both families.
func (c *Conn) UDP() (flows []Flow, err error) {
	err = c.each(func(f *conntrack.Flow) {
		if f.TupleOrig.Proto.Protocol == unix.IPPROTO_UDP {
			flows = append(flows, fromKernel(*f))
		}
	})
	if err != nil {
		err = fmt.Errorf("list UDP flows: %w", err)
	}
	return flows, err
}

// Sources returns the addresses that flows of all protocols were begun from.
func (c *Conn) Sources() (addrs map[netip.Addr]bool, err error) {
	addrs = map[netip.Addr]bool{}
	err = c.each(func(f *conntrack.Flow) { addrs[f.TupleOrig.IP.SourceAddress] = true })
	if err != nil {
		err = fmt.Errorf("list the sources of flows: %w", err)
	}
	return addrs, err
}

// each calls yield for the flows of both families.
func (c *Conn) each(yield func(*conntrack.Flow)) (err error) {
	for _, family := range []netfilter.ProtoFamily{netfilter.ProtoIPv4, netfilter.ProtoIPv6} {
		all, dumpErr := c.dump(family)
		if dumpErr != nil && !errors.Is(dumpErr, ErrInterrupted) {
			return dumpErr
		}
		err = cmp.Or(err, dumpErr)
		for i := range all {
			yield(&all[i])
		}
	}
	return err
}

// dump lists the flows of a family, and again when the kernel says that it was interrupted. The kernel filters by
// family; it has no filter by protocol that the library can set.
func (c *Conn) dump(family netfilter.ProtoFamily) ([]conntrack.Flow, error) {
	var flows []conntrack.Flow
	var err error
	for range attempts {
		flows, err = c.conn.DumpFilter(conntrack.NewFilter().Family(family), nil)
		if !errors.Is(err, unix.EINTR) {
			return flows, err
		}
	}
	return flows, ErrInterrupted
}

// Delete removes flows and returns how many it removed; a flow that is gone already counts as neither removed nor
// failed. It goes on after a failure, and joins the errors.
func (c *Conn) Delete(flows []Flow) (int, error) {
	var errs []error
	deleted := 0
	for _, f := range flows {
		err := c.conn.Delete(toKernel(f))
		switch {
		case err == nil:
			deleted++
		case !errors.Is(err, unix.ENOENT):
			errs = append(errs, fmt.Errorf("delete flow %s: %w", f, err))
		}
	}
	return deleted, errors.Join(errs...)
}

// Create adds an entry that lives for seconds. Tests use it to begin with a given table.
func (c *Conn) Create(f Flow, seconds uint32) error {
	k := toKernel(f)
	k.Timeout = seconds
	k.Status = conntrack.StatusConfirmed | natStatus(f)
	if !f.Unreplied {
		k.Status |= conntrack.StatusSeenReply | conntrack.StatusAssured
	}
	if err := c.conn.Create(k); err != nil {
		return fmt.Errorf("create flow %s: %w", f, err)
	}
	return nil
}

func natStatus(f Flow) conntrack.Status {
	var s conntrack.Status
	if f.ReplyFrom != f.Dest {
		s |= conntrack.StatusDstNAT | conntrack.StatusDstNATDone
	}
	if f.ReplyTo != f.Source {
		s |= conntrack.StatusSrcNAT | conntrack.StatusSrcNATDone
	}
	return s
}

func fromKernel(f conntrack.Flow) Flow {
	return Flow{
		Protocol:  f.TupleOrig.Proto.Protocol,
		Source:    netip.AddrPortFrom(f.TupleOrig.IP.SourceAddress, f.TupleOrig.Proto.SourcePort),
		Dest:      netip.AddrPortFrom(f.TupleOrig.IP.DestinationAddress, f.TupleOrig.Proto.DestinationPort),
		ReplyFrom: netip.AddrPortFrom(f.TupleReply.IP.SourceAddress, f.TupleReply.Proto.SourcePort),
		ReplyTo:   netip.AddrPortFrom(f.TupleReply.IP.DestinationAddress, f.TupleReply.Proto.DestinationPort),
		Mark:      f.Mark,
		Zone:      f.Zone,
		Unreplied: !f.Status.SeenReply(),
	}
}

func toKernel(f Flow) conntrack.Flow {
	return conntrack.Flow{
		Mark:       f.Mark,
		Zone:       f.Zone,
		TupleOrig:  tuple(f.Protocol, f.Source, f.Dest),
		TupleReply: tuple(f.Protocol, f.ReplyFrom, f.ReplyTo),
	}
}

func tuple(protocol uint8, src, dst netip.AddrPort) conntrack.Tuple {
	return conntrack.Tuple{
		IP: conntrack.IPTuple{SourceAddress: src.Addr(), DestinationAddress: dst.Addr()},
		Proto: conntrack.ProtoTuple{
			Protocol: protocol, SourcePort: src.Port(), DestinationPort: dst.Port(),
		},
	}
}
