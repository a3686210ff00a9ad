package ipset

import (
	"encoding/binary"
	"net/netip"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

func newEncoder() *netlink.AttributeEncoder {
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = binary.BigEndian
	return e
}

// revisions are, by type, the lowest that knows SCTP and ranges of length 0 to 32, and the lowest that has marks.
var revisions = map[string]struct{ plain, marks uint8 }{
	HashIP:        {0, 4},
	HashIPPort:    {1, 5},
	HashIPPortIP:  {1, 5},
	HashIPPortNet: {3, 7},
	BitmapPort:    {0, 3},
}

// encode writes what IPSET_CMD_CREATE wants behind the set's name.
func (h Header) encode(e *netlink.AttributeEncoder) error {
	revision := revisions[h.Type].plain
	if h.Marks {
		revision = revisions[h.Type].marks
	}
	e.String(nl.IPSET_ATTR_TYPENAME, h.Type)
	e.Uint8(nl.IPSET_ATTR_REVISION, revision)
	e.Uint8(nl.IPSET_ATTR_FAMILY, h.family())
	e.Nested(nl.IPSET_ATTR_DATA, func(d *netlink.AttributeEncoder) error {
		if h.Type == BitmapPort {
			d.Uint16(nl.IPSET_ATTR_PORT_FROM|netlink.NetByteOrder, 0)
			d.Uint16(nl.IPSET_ATTR_PORT_TO|netlink.NetByteOrder, 65535)
		}
		if h.HashSize != 0 {
			d.Uint32(nl.IPSET_ATTR_HASHSIZE|netlink.NetByteOrder, h.HashSize)
		}
		if h.MaxElem != 0 {
			d.Uint32(nl.IPSET_ATTR_MAXELEM|netlink.NetByteOrder, h.MaxElem)
		}
		if h.Marks {
			d.Uint32(nl.IPSET_ATTR_CADT_FLAGS|netlink.NetByteOrder, nl.IPSET_FLAG_WITH_SKBINFO)
		}
		return nil
	})
	return nil
}

func (h Header) family() uint8 {
	switch {
	case h.Type == BitmapPort:
		return unix.AF_UNSPEC
	case h.IPv6:
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// allBits is the mask of a mark that replaces whatever a packet has.
const allBits = 0xffffffff

// encode writes an entry.
func (i Item) encode(e *netlink.AttributeEncoder) error {
	if i.Addr.IsValid() {
		encodeAddr(e, nl.IPSET_ATTR_IP, i.Addr)
	}
	if i.Protocol != 0 {
		e.Uint8(nl.IPSET_ATTR_PROTO, i.Protocol)
	}
	if i.Protocol != 0 || !i.Addr.IsValid() {
		e.Uint16(nl.IPSET_ATTR_PORT|netlink.NetByteOrder, i.Port)
	}
	if i.Net.IsValid() {
		encodeAddr(e, nl.IPSET_ATTR_IP2, i.Net.Addr())
		if !i.Net.IsSingleIP() {
			e.Uint8(nl.IPSET_ATTR_CIDR2, uint8(i.Net.Bits()))
		}
	}
	if i.Mark != 0 {
		e.Uint64(nl.IPSET_ATTR_SKBMARK|netlink.NetByteOrder, uint64(i.Mark)<<32|allBits)
	}
	if i.NoMatch {
		e.Uint32(nl.IPSET_ATTR_CADT_FLAGS|netlink.NetByteOrder, nl.IPSET_FLAG_NOMATCH)
	}
	e.Uint32(nl.IPSET_ATTR_LINENO|netlink.NetByteOrder, 0)
	return nil
}

func encodeAddr(e *netlink.AttributeEncoder, kind uint16, a netip.Addr) {
	of := uint16(nl.IPSET_ATTR_IPADDR_IPV4)
	if a.Is6() {
		of = nl.IPSET_ATTR_IPADDR_IPV6
	}
	e.Nested(kind, func(n *netlink.AttributeEncoder) error {
		n.Bytes(of|netlink.NetByteOrder, a.AsSlice())
		return nil
	})
}
