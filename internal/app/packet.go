package app

import (
	"fmt"
	"net/netip"
	"strings"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Question is a packet as a user describes it.
type Question struct {
	From      netip.Addr
	To        netip.AddrPort
	Protocol  model.Protocol
	Interface string
	// Via is how it comes to the rules; "" is local for an address of the node and forward for any other.
	Via string
}

// ParseQuestion reads the flags of trace. to is ADDRESS:PORT or ADDRESS:PORT/PROTOCOL, IPv6 in brackets; without a
// protocol it is TCP. The error wraps ErrInput.
func ParseQuestion(from, to, via, iface string) (Question, error) {
	q := Question{Via: via, Interface: iface}
	if err := q.parse(from, to); err != nil {
		return Question{}, WrongInput(err)
	}
	return q, nil
}

func (q *Question) parse(from, to string) (err error) {
	if q.From, err = netip.ParseAddr(from); err != nil || q.From.Zone() != "" || q.From.IsUnspecified() {
		return fmt.Errorf("--from %q: want an IP address", from)
	}
	addr, protocol, hasProtocol := strings.Cut(to, "/")
	if q.To, err = netip.ParseAddrPort(addr); err != nil || q.To.Addr().Zone() != "" || q.To.Addr().IsUnspecified() {
		return fmt.Errorf("--to %q: want ADDRESS:PORT/PROTOCOL such as 10.96.0.10:53/UDP or [fd00::10]:53/UDP", to)
	}
	if q.To.Port() == 0 {
		return fmt.Errorf("--to %q: port 0 is no port", to)
	}
	q.Protocol = model.TCP
	if hasProtocol {
		if q.Protocol, err = model.ParseProtocol(protocol); err != nil {
			return fmt.Errorf("--to %q: %w", to, err)
		}
	}
	q.From, q.To = q.From.Unmap(), netip.AddrPortFrom(q.To.Addr().Unmap(), q.To.Port())
	if model.FamilyOf(q.From) != model.FamilyOf(q.To.Addr()) {
		return fmt.Errorf("--from %s and --to %s: want addresses of one family", from, to)
	}
	if q.Via != "" && q.Via != plan.ViaForward.String() && q.Via != plan.ViaLocal.String() {
		return fmt.Errorf("--via %q: want forward or local", q.Via)
	}
	return nil
}

// packet is the question's packet at node n.
func (q Question) packet(n *plan.Node) plan.Packet {
	p := plan.Packet{From: q.From, To: q.To, Protocol: q.Protocol, Interface: q.Interface}
	if q.Via == plan.ViaLocal.String() || q.Via == "" && n.IsLocal(q.From) {
		p.Via = plan.ViaLocal
	}
	return p
}
