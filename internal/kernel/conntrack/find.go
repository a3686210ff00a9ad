package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"github.com/ti-mo/conntrack"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"
)

// ByReply finds the flow whose replies go from one address to another; ok is false if there is none. Who answers learns by
// it where its client wanted to go: to Flow.Dest.
func (c *Conn) ByReply(protocol uint8, from, to netip.AddrPort) (f Flow, ok bool, err error) {
	request, err := byReply(protocol, from, to)
	if err == nil {
		err = c.single.Get(context.Background(), uint16(request.Header.Type), request.Data, func(kind uint16, data []byte) (err error) {
			ok = true
			f, err = decode(kind, data)
			return err
		})
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return f, false, nil
	case err != nil:
		return f, false, fmt.Errorf("find the flow from %s to %s: %w", from, to, err)
	}
	return f, ok, nil
}

// ctGet is IPCTNL_MSG_CT_GET of linux/netfilter/nfnetlink_conntrack.h, and the others are its attributes.
const (
	ctGet = 1

	ctaTupleReply = 2
	ctaTupleIP    = 1
	ctaTupleProto = 2
	ctaIPv4Src    = 1 // the destination's is one more, and those of IPv6 are two more
	ctaProtoNum   = 1
	ctaProtoSrc   = 2
	ctaProtoDst   = 3
)

// byReply asks for one flow. The library's own Get waits for ever: the kernel marks its answer as one of several, and
// nothing comes after it that the library would take for the end.
func byReply(protocol uint8, from, to netip.AddrPort) (netlink.Message, error) {
	family, ipSrc := netfilter.ProtoIPv4, uint16(ctaIPv4Src)
	if from.Addr().Is6() {
		family, ipSrc = netfilter.ProtoIPv6, ctaIPv4Src+2
	}
	return netfilter.MarshalNetlink(
		netfilter.Header{SubsystemID: netfilter.NFSubsysCTNetlink, MessageType: ctGet, Family: family},
		[]netfilter.Attribute{nested(ctaTupleReply,
			nested(ctaTupleIP,
				netfilter.Attribute{Type: ipSrc, Data: from.Addr().AsSlice()},
				netfilter.Attribute{Type: ipSrc + 1, Data: to.Addr().AsSlice()}),
			nested(ctaTupleProto,
				netfilter.Attribute{Type: ctaProtoNum, Data: []byte{protocol}},
				port(ctaProtoSrc, from), port(ctaProtoDst, to)),
		)})
}

func nested(kind uint16, children ...netfilter.Attribute) netfilter.Attribute {
	return netfilter.Attribute{Type: kind, Nested: true, Children: children}
}

func port(kind uint16, a netip.AddrPort) netfilter.Attribute {
	return netfilter.Attribute{Type: kind, NetByteOrder: true, Data: binary.BigEndian.AppendUint16(nil, a.Port())}
}

func decode(kind uint16, data []byte) (Flow, error) {
	var e conntrack.Event
	err := e.Unmarshal(netlink.Message{Header: netlink.Header{Type: netlink.HeaderType(kind)}, Data: data})
	if err != nil {
		return Flow{}, err
	}
	return fromKernel(*e.Flow), nil
}
