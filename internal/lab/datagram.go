package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"sluice/internal/model"
)

// datagrams is a socket that tells which of the host's addresses a datagram came to, and answers from there. For SCTP it
// is a raw socket: kernels often lack SCTP, and one packet each way is all that the lab needs.
type datagrams struct {
	net.PacketConn
	protocol model.Protocol
	v4       *ipv4.PacketConn // one of the two
	v6       *ipv6.PacketConn
	port     uint16 // of a UDP socket
}

func listenDatagrams(protocol model.Protocol, at netip.AddrPort) (*datagrams, error) {
	name, address := network("udp", at.Addr()), at.String()
	if protocol == model.SCTP {
		name, address = fmt.Sprintf("%s:%d", network("ip", at.Addr()), model.SCTP), at.Addr().String()
	}
	c, err := net.ListenPacket(name, address)
	if err != nil {
		return nil, err
	}
	d := &datagrams{PacketConn: c, protocol: protocol}
	if udp, ok := c.LocalAddr().(*net.UDPAddr); ok {
		d.port = udp.AddrPort().Port()
	}
	if at.Addr().Is4() {
		d.v4 = ipv4.NewPacketConn(c)
		err = d.v4.SetControlMessage(ipv4.FlagDst, true)
	} else {
		d.v6 = ipv6.NewPacketConn(c)
		err = d.v6.SetControlMessage(ipv6.FlagDst, true)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return d, nil
}

// read waits for a datagram. It returns the address of this host that it was sent to.
func (d *datagrams) read(b []byte) (n int, local netip.Addr, peer net.Addr, err error) {
	var dst net.IP
	if d.v4 != nil {
		var cm *ipv4.ControlMessage
		n, cm, peer, err = d.v4.ReadFrom(b)
		if cm != nil {
			dst = cm.Dst
		}
	} else {
		var cm *ipv6.ControlMessage
		n, cm, peer, err = d.v6.ReadFrom(b)
		if cm != nil {
			dst = cm.Dst
		}
	}
	local, _ = netip.AddrFromSlice(dst)
	return n, local.Unmap(), peer, err
}

// write sends a datagram from the address local of this host.
func (d *datagrams) write(b []byte, local netip.Addr, peer net.Addr) error {
	var err error
	if d.v4 != nil {
		_, err = d.v4.WriteTo(b, &ipv4.ControlMessage{Src: local.AsSlice()}, peer)
	} else {
		_, err = d.v6.WriteTo(b, &ipv6.ControlMessage{Src: local.AsSlice()}, peer)
	}
	return err
}

// answerAll answers everything that comes to the port until the socket is closed. What cannot be answered the client
// sees as a drop.
func answerAll(d *datagrams, port uint16) {
	b := make([]byte, 2048)
	for {
		n, local, peer, err := d.read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error for an earlier answer
		}
		if answer := d.answer(b[:n], netip.AddrPortFrom(local, port), peer); answer != nil {
			_ = d.write(answer, local, peer)
		}
	}
}

// answer is nil for an SCTP packet that is not an INIT for the port: a raw socket sees those of all ports.
func (d *datagrams) answer(packet []byte, local netip.AddrPort, peer net.Addr) []byte {
	if udp, ok := peer.(*net.UDPAddr); ok {
		from := udp.AddrPort()
		return []byte(greeting(local, netip.AddrPortFrom(from.Addr().Unmap(), from.Port())))
	}
	init, ok := parseSCTP(packet)
	if !ok || init.chunk != chunkInit || init.dst != local.Port() {
		return nil
	}
	from, _ := netip.AddrFromSlice(peer.(*net.IPAddr).IP)
	return init.ack(greeting(local, netip.AddrPortFrom(from.Unmap(), init.src))).bytes()
}

// datagram sends one UDP datagram or SCTP INIT and waits for the answer.
func (d Dial) datagram() (Outcome, error) {
	conn, err := d.open()
	if err != nil {
		return failure(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(d.timeout())); err != nil {
		return Outcome{}, err
	}
	hello, port := []byte("hello"), uint16(0)
	if d.Protocol == model.SCTP {
		init := newInit(d.FromPort, d.To.Port())
		hello, port = init.bytes(), init.src
	}
	// EPERM is what a filter's verdict on this host looks like; whether it was to reject or to drop is still to come.
	if _, err := conn.Write(hello); err != nil && !errors.Is(err, syscall.EPERM) {
		return failure(err)
	}
	return d.await(conn.(net.PacketConn), port)
}

// await reads until the answer is there. A raw SCTP socket also sees what is meant for other ports.
func (d Dial) await(conn net.PacketConn, port uint16) (Outcome, error) {
	b := make([]byte, 2048)
	for {
		n, _, err := conn.ReadFrom(b) // Read would leave an IPv4 header in front of SCTP
		if err != nil {
			return failure(err)
		}
		if d.Protocol == model.UDP {
			return parseGreeting(string(b[:n]))
		}
		if ack, ok := parseSCTP(b[:n]); ok && ack.chunk == chunkInitAck && ack.dst == port && ack.src == d.To.Port() {
			return parseGreeting(ack.cookie)
		}
	}
}

func (d Dial) open() (net.Conn, error) {
	var dialer net.Dialer
	if d.Protocol == model.UDP {
		if from := d.from(); from.IsValid() {
			dialer.LocalAddr = net.UDPAddrFromAddrPort(from)
		}
		return dialer.Dial("udp", d.To.String())
	}
	if d.From.IsValid() {
		dialer.LocalAddr = &net.IPAddr{IP: d.From.AsSlice()}
	}
	name := fmt.Sprintf("%s:%d", network("ip", d.To.Addr()), model.SCTP)
	return dialer.Dial(name, d.To.Addr().String())
}
