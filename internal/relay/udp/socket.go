package udp

import (
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"sluice/internal/kernel/datagram"
)

// socket is a listening socket that knows to which address each datagram came, and sends from the address it is told.
type socket struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	v4   *ipv4.PacketConn // one of the two
	v6   *ipv6.PacketConn
}

func newSocket(conn *net.UDPConn) (*socket, error) {
	s := &socket{conn: conn}
	var err error
	if s.raw, err = conn.SyscallConn(); err != nil {
		return nil, err
	}
	if err := datagram.Room(s.raw, room); err != nil {
		return nil, err
	}
	if s.addr().Addr().Is4() {
		s.v4 = ipv4.NewPacketConn(conn)
		return s, s.v4.SetControlMessage(ipv4.FlagDst, true)
	}
	s.v6 = ipv6.NewPacketConn(conn)
	return s, s.v6.SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
}

func (s *socket) addr() netip.AddrPort {
	at := s.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// read fills messages with what has come, and does not wait for more.
func (s *socket) read(messages []ipv4.Message) (int, error) {
	if s.v4 != nil {
		return s.v4.ReadBatch(messages, syscall.MSG_DONTWAIT)
	}
	return s.v6.ReadBatch(messages, syscall.MSG_DONTWAIT)
}

// sentTo is the address that a datagram was sent to, out of its control message. A link local address has the index of
// the interface as its zone.
func (s *socket) sentTo(control []byte) (netip.Addr, bool) {
	if s.v4 != nil {
		var m ipv4.ControlMessage
		if m.Parse(control) != nil {
			return netip.Addr{}, false
		}
		return netip.AddrFromSlice(m.Dst.To4())
	}
	var m ipv6.ControlMessage
	if m.Parse(control) != nil {
		return netip.Addr{}, false
	}
	a, ok := netip.AddrFromSlice(m.Dst)
	if a.IsLinkLocalUnicast() {
		a = a.WithZone(strconv.Itoa(m.IfIndex))
	}
	return a, ok
}

// from is the control message by which a datagram is sent from an address.
func from(a netip.Addr) []byte {
	if a.Is4() {
		return (&ipv4.ControlMessage{Src: a.AsSlice()}).Marshal()
	}
	m := ipv6.ControlMessage{Src: a.AsSlice()}
	m.IfIndex, _ = strconv.Atoi(a.Zone()) // 0: any
	return m.Marshal()
}
