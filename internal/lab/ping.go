package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"sluice/internal/model"
	"sluice/internal/plan"
)

// Ping sends one ICMP echo request from an address of the host, or from any if it is the zero value, and waits for what
// comes back: [plan.Forward] is an answer from the very address that was asked, [plan.Reject] that it is unreachable,
// [plan.Drop] silence.
func (h *Host) Ping(from, to netip.Addr) (Outcome, error) {
	p := newPing(from, to)
	var o Outcome
	err := h.ns.Do(func() (err error) {
		o, err = p.run()
		return err
	})
	if err != nil {
		err = fmt.Errorf("ping %s from %s: %w", to, h.Name, err)
	}
	return o, err
}

// pingTimeout leaves time for a neighbour to be asked for twice.
const pingTimeout = 1500 * time.Millisecond

// ping is an echo request and what is peculiar to its family.
type ping struct {
	from, to       netip.Addr
	id             int
	network        string
	protocol       int
	request, reply icmp.Type
}

func newPing(from, to netip.Addr) ping {
	p := ping{
		from: from, to: to, id: rand.IntN(1 << 16),
		network: "ip4:icmp", protocol: 1, request: ipv4.ICMPTypeEcho, reply: ipv4.ICMPTypeEchoReply,
	}
	if to.Is6() {
		p.network, p.protocol = "ip6:ipv6-icmp", 58
		p.request, p.reply = ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply
	}
	if !from.IsValid() {
		p.from = model.FamilyOf(to).Unspecified()
	}
	return p
}

// run is for a thread in the client's namespace.
func (p ping) run() (Outcome, error) {
	conn, err := net.ListenPacket(p.network, p.from.String())
	if err != nil {
		return Outcome{}, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(pingTimeout)); err != nil {
		return Outcome{}, err
	}
	// The kernel fills in the checksum of IPv6.
	message, err := (&icmp.Message{Type: p.request, Body: &icmp.Echo{ID: p.id, Seq: 1}}).Marshal(nil)
	if err != nil {
		return Outcome{}, err
	}
	// EPERM is what a filter's verdict on this host looks like; whether it was to reject or to drop is still to come.
	if _, err := conn.WriteTo(message, &net.IPAddr{IP: p.to.AsSlice()}); err != nil && !errors.Is(err, syscall.EPERM) {
		return failure(err)
	}
	return p.await(conn)
}

// await reads until there is an answer. The socket sees all that comes to its address.
func (p ping) await(conn net.PacketConn) (Outcome, error) {
	b := make([]byte, 2048)
	for {
		n, peer, err := conn.ReadFrom(b)
		if err != nil {
			return failure(err)
		}
		m, err := icmp.ParseMessage(p.protocol, b[:n])
		if err != nil {
			return Outcome{}, err
		}
		from, _ := netip.AddrFromSlice(peer.(*net.IPAddr).IP)
		switch body := m.Body.(type) {
		case *icmp.Echo:
			if m.Type == p.reply && body.ID == p.id && from.Unmap() == p.to {
				return Outcome{Action: plan.Forward, Endpoint: netip.AddrPortFrom(p.to, 0)}, nil
			}
		case *icmp.DstUnreach:
			if p.isMine(body.Data) {
				return Outcome{Action: plan.Reject}, nil
			}
		}
	}
}

// isMine reports whether an error quotes this request, with the IP header in front of it.
func (p ping) isMine(quoted []byte) bool {
	header := ipv6.HeaderLen
	if p.to.Is4() {
		header = ipv4.HeaderLen
	}
	id := header + 4
	return len(quoted) >= id+2 && int(binary.BigEndian.Uint16(quoted[id:])) == p.id
}
